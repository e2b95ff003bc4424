//! The checks on every request before a handler sees it.

use axum::http::{HeaderMap, Method, header};

use super::{Caller, Credential, Logins, Origin, Refused};
use crate::problem::Problem;

/// A header that a page of another origin cannot send without permission.
const OURS: &str = "x-stepwell";

/// The header with a cookie's key. The page keeps it where no other origin can read it.
const KEY: &str = "x-stepwell-key";

/// The most bytes of all headers of a request.
const HEAD: usize = 64 * 1024;

/// The entrance of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entrance {
    /// The page and the API.
    Api,
    /// MCP. Its clients do not send our header, so only tokens count there, not cookies: a browser
    /// would send a cookie for any page.
    Mcp,
}

/// Checks the origin and the credentials of requests.
#[derive(Debug)]
pub(crate) struct Guard {
    /// The origins of the server.
    pub(crate) origins: Vec<Origin>,
    pub(crate) logins: Logins,
    /// The cookie's name, which contains the port, so that two servers do not interfere.
    pub(crate) cookie: String,
}

/// A request with a valid origin; with the caller and their credential, if logged in.
#[derive(Clone, Debug)]
pub(crate) struct Passed {
    login: Result<(Caller, Credential), Refused>,
}

impl Passed {
    /// The caller.
    ///
    /// # Errors
    /// If not logged in.
    pub(crate) fn caller(self) -> Result<Caller, Problem> {
        self.login().map(|(caller, _)| caller)
    }

    /// The caller and their credential.
    ///
    /// # Errors
    /// If not logged in.
    pub(crate) fn login(self) -> Result<(Caller, Credential), Problem> {
        self.login.map_err(|why| match why {
            Refused::Unknown => Problem::unauthorized(),
            Refused::TooMany => Problem::too_many_attempts(),
        })
    }
}

impl Guard {
    /// Checks a request.
    pub(crate) fn check(
        &self,
        entrance: Entrance,
        method: &Method,
        headers: &HeaderMap,
    ) -> Result<Passed, Problem> {
        let size = headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        if size.sum::<usize>() > HEAD {
            return Err(Problem::head_too_large());
        }
        let host = text(headers, header::HOST.as_str()).unwrap_or_default();
        if !self.origins.iter().any(|origin| origin.is_host(host)) {
            return Err(Problem::wrong_host());
        }
        if let Some(origin) = text(headers, "origin")
            && !self.origins.iter().any(|it| it.to_string().eq_ignore_ascii_case(origin))
        {
            return Err(Problem::foreign_origin());
        }
        let changes = !matches!(*method, Method::GET | Method::HEAD);
        if changes && entrance == Entrance::Api {
            let is_json = text(headers, header::CONTENT_TYPE.as_str()).is_some_and(|it| {
                it.split(';').next().unwrap_or_default().trim() == "application/json"
            });
            if !is_json || !headers.contains_key(OURS) {
                return Err(Problem::not_from_us());
            }
        }
        if let Some(token) = bearer(headers) {
            return Ok(Passed { login: self.logins.by_token(token) });
        }
        let shown = self.cookie_of(headers).zip(text(headers, KEY));
        let Some((cookie, key)) = shown.filter(|_| entrance == Entrance::Api) else {
            return Ok(Passed { login: Err(Refused::Unknown) });
        };
        Ok(Passed { login: self.logins.by_cookie(cookie, key).ok_or(Refused::Unknown) })
    }

    /// Our cookie among a browser's cookies.
    pub(crate) fn cookie_of<'a>(&self, headers: &'a HeaderMap) -> Option<&'a str> {
        let cookies = headers.get_all(header::COOKIE).iter().filter_map(|it| it.to_str().ok());
        let mut pairs =
            cookies.flat_map(|line| line.split(';')).filter_map(|it| it.trim().split_once('='));
        pairs.find(|(name, _)| *name == self.cookie).map(|(_, value)| value)
    }

    /// The header that sets the login cookie.
    pub(crate) fn set_cookie(&self, value: &str) -> String {
        let secure = if self.origins.iter().any(Origin::is_secure) { "; Secure" } else { "" };
        let age = if value.is_empty() { "; Max-Age=0" } else { "; Max-Age=2592000" };
        format!("{}={value}; HttpOnly; SameSite=Strict; Path=/{age}{secure}", self.cookie)
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = text(headers, header::AUTHORIZATION.as_str())?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;
    use crate::security::{Logouts, NamedToken, Role, Token, Tokens};

    fn guard() -> (Guard, Token) {
        let token = Token::generate().unwrap();
        let named = NamedToken {
            name: "ann".to_owned(),
            role: Role::Operator,
            is_user: true,
            token: token.clone(),
        };
        let origins = Origin::of_listener("127.0.0.1:4000".parse().unwrap(), "http");
        let (tokens, logouts) = (Tokens::new(vec![named]).unwrap(), Logouts::new(None));
        let logins =
            Logins::new(tokens, logouts, std::sync::Arc::new(stepwell::clock::SystemClock));
        (Guard { origins, logins, cookie: "stepwell_4000".to_owned() }, token)
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_host_that_is_not_ours_is_refused() {
        let (guard, _) = guard();
        for host in ["evil.example", "evil.example:4000", "127.0.0.1:4001", ""] {
            let refused =
                guard.check(Entrance::Api, &Method::GET, &headers(&[("host", host)])).unwrap_err();
            assert_eq!(refused.status(), 421, "{host}");
        }
        for host in ["127.0.0.1:4000", "localhost:4000", "[::1]:4000", "LOCALHOST:4000"] {
            assert!(
                guard.check(Entrance::Api, &Method::GET, &headers(&[("host", host)])).is_ok(),
                "{host}"
            );
        }
    }

    #[test]
    fn another_origin_is_refused_whatever_it_shows() {
        let (guard, token) = guard();
        let bearer = format!("Bearer {}", token.reveal());
        let host = ("host", "127.0.0.1:4000");
        for origin in ["https://evil.example", "null", "http://127.0.0.1:4001"] {
            let sent = headers(&[host, ("origin", origin), ("authorization", &bearer)]);
            assert_eq!(
                guard.check(Entrance::Api, &Method::GET, &sent).unwrap_err().status(),
                403,
                "{origin}"
            );
        }
    }

    #[test]
    fn a_cookie_counts_only_with_the_key_of_our_own_page() {
        let (guard, _) = guard();
        let link = guard.logins.link().unwrap().code.reveal();
        let login = guard.logins.redeem(&link).unwrap();
        let cookie = format!("a=b; stepwell_4000={}", login.cookie);
        let (host, cookie) = (("host", "127.0.0.1:4000"), ("cookie", cookie.as_str()));
        let ask = |more: (&'static str, &str)| {
            let sent = headers(&[host, cookie, more]);
            guard.check(Entrance::Api, &Method::GET, &sent).unwrap().caller()
        };
        assert_eq!(ask((KEY, &login.key)).unwrap().name, "ann");
        // A server on another port receives the cookie, and can send any header.
        for more in
            [("sec-fetch-site", "same-origin"), (OURS, "1"), (KEY, ""), (KEY, &login.cookie)]
        {
            assert_eq!(ask(more).unwrap_err().status(), 401, "{more:?}");
        }
    }

    #[test]
    fn a_change_needs_json_and_our_header() {
        let (guard, token) = guard();
        let bearer = format!("Bearer {}", token.reveal());
        let host = ("host", "127.0.0.1:4000");
        let json = ("content-type", "application/json; charset=utf-8");
        let own = ("authorization", bearer.as_str());
        let sent = headers(&[host, own, json]);
        assert_eq!(guard.check(Entrance::Api, &Method::POST, &sent).unwrap_err().status(), 415);
        let sent = headers(&[host, own, ("x-stepwell", "1"), ("content-type", "text/plain")]);
        assert_eq!(guard.check(Entrance::Api, &Method::POST, &sent).unwrap_err().status(), 415);
        let sent = headers(&[host, own, json, ("x-stepwell", "1")]);
        assert_eq!(
            guard.check(Entrance::Api, &Method::POST, &sent).unwrap().caller().unwrap().name,
            "ann"
        );
    }

    #[test]
    fn nobody_is_let_in_without_a_token() {
        let (guard, _) = guard();
        let passed = guard
            .check(Entrance::Api, &Method::GET, &headers(&[("host", "localhost:4000")]))
            .unwrap();
        assert_eq!(passed.caller().unwrap_err().status(), 401);
    }

    #[test]
    fn mcp_wants_a_token_and_takes_no_cookie() {
        let (guard, token) = guard();
        let link = guard.logins.link().unwrap().code.reveal();
        let login = guard.logins.redeem(&link).unwrap();
        let cookie = format!("stepwell_4000={}", login.cookie);
        let (host, bearer) = (("host", "127.0.0.1:4000"), format!("Bearer {}", token.reveal()));
        let post = |pairs: &[(&'static str, &str)]| {
            guard.check(Entrance::Mcp, &Method::POST, &headers(pairs))
        };
        let with_cookie = [host, ("cookie", &cookie), (KEY, &login.key)];
        assert_eq!(post(&with_cookie).unwrap().caller().unwrap_err().status(), 401);
        let own = ("authorization", bearer.as_str());
        assert_eq!(post(&[host, own]).unwrap().caller().unwrap().name, "ann");
        let foreign = ("origin", "https://evil.example");
        assert_eq!(post(&[host, own, foreign]).unwrap_err().status(), 403);
        assert_eq!(post(&[("host", "evil.example"), own]).unwrap_err().status(), 421);
    }
}
