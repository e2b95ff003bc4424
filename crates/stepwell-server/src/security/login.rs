//! Logins: tokens of programs, one-time links and cookies of browsers.
//!
//! A cookie is signed with the token that it was issued for, and not stored: it outlives a restart
//! of the server, and ends with the token. Revoked cookies are remembered, also over restarts.
//!
//! A browser sends a cookie to every port of its host, so a cookie alone grants nothing. Each
//! cookie has a key, which the page keeps in its own storage and sends as a header. The key is
//! derived from the token and the cookie: a server that sees the cookie cannot compute it.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::{Mutex, MutexGuard};
use stepwell::clock::Clock;

use super::{Caller, Logouts, NamedToken, Token, Tokens};

/// A minute, in the clock's microseconds.
const MINUTE: i64 = 60_000_000;

/// How long a one-time link is valid.
const LINK_LIFE: i64 = MINUTE;

/// How long a browser stays logged in.
const COOKIE_LIFE: i64 = 30 * 24 * 60 * MINUTE;

/// How many wrong tokens a minute are checked.
const FAILURES: usize = 10;

/// The credentials of callers.
#[derive(Debug)]
pub(crate) struct Logins {
    tokens: Tokens,
    logouts: Logouts,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    links: Vec<Pass>,
    /// The times of wrong tokens.
    failures: Vec<i64>,
    streams: HashMap<String, usize>,
}

#[derive(Clone, Debug)]
struct Pass {
    secret: Token,
    /// The token that signs its cookie.
    owner: NamedToken,
    until: i64,
}

/// A caller's credential. Long connections check again whether it is still valid.
#[derive(Clone, Debug)]
pub(crate) enum Credential {
    /// A token.
    Token(Token),
    /// A cookie.
    Cookie(String),
}

/// A link that logs a browser in, once.
#[derive(Clone, Debug)]
pub struct OneTimeLink {
    /// The part after `/login#`.
    pub code: Token,
}

/// Why a credential is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is unknown.
    Unknown,
    /// Too many wrong ones: try again later.
    TooMany,
}

impl Logins {
    pub(crate) fn new(tokens: Tokens, logouts: Logouts, clock: Arc<dyn Clock>) -> Self {
        Self { tokens, logouts, clock, state: Mutex::default() }
    }

    fn now(&self) -> i64 {
        self.clock.now().as_micros()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The owner of this token.
    fn owner(&self, shown: &Token) -> Option<NamedToken> {
        // All are compared, so that the time does not reveal which one matched.
        self.tokens.now().iter().fold(None, |found, known| match known.token.matches(shown) {
            true => Some(known.clone()),
            false => found,
        })
    }

    fn owner_of_text(&self, text: &str) -> Result<NamedToken, Refused> {
        let found = Token::parse(text).and_then(|shown| self.owner(&shown));
        found.ok_or_else(|| self.state().fail(self.now()))
    }

    /// The caller with this token.
    pub(crate) fn by_token(&self, text: &str) -> Result<(Caller, Credential), Refused> {
        let owner = self.owner_of_text(text)?;
        Ok((owner.caller(), Credential::Token(owner.token)))
    }

    /// A link for a browser of the user who runs the server.
    pub(crate) fn link(&self) -> io::Result<OneTimeLink> {
        let none = || io::Error::other("there is no token of the user's own");
        let owner = self.tokens.users_own().ok_or_else(none)?;
        let code = Token::generate()?;
        let until = self.now() + LINK_LIFE;
        self.state().links.push(Pass { secret: code.clone(), owner, until });
        Ok(OneTimeLink { code })
    }

    /// Takes a link, which works once, or a token, and logs a browser in. Cookie and key are made
    /// with the token itself, so they grant nothing more.
    pub(crate) fn redeem(&self, code: &str) -> Result<BrowserLogin, Refused> {
        let linked = self.state().take_link(code, self.now());
        let owner = match linked {
            Some(owner) => owner,
            // A token works as a login, too.
            None => self.owner_of_text(code)?,
        };
        let cookie = Cookie::new(&owner, self.now() + COOKIE_LIFE);
        let Cookie(cookie) = cookie.map_err(|_| Refused::Unknown)?;
        let key = page_key(&owner, &cookie);
        Ok(BrowserLogin { cookie, key })
    }

    /// The caller of a login: a cookie with its key.
    pub(crate) fn by_cookie(&self, cookie: &str, key: &str) -> Option<(Caller, Credential)> {
        let owner = self.owner_of_cookie(cookie)?;
        let right = Token::parse(&page_key(&owner, cookie))?;
        let is_right = Token::parse(key).is_some_and(|shown| shown.matches(&right));
        is_right.then(|| (owner.caller(), Credential::Cookie(cookie.to_owned())))
    }

    /// The owner of a cookie, if it is still valid.
    fn owner_of_cookie(&self, text: &str) -> Option<NamedToken> {
        let (tokens, now) = (self.tokens.now(), self.now());
        let owner = tokens.iter().find(|known| Cookie::is_signed(text, known, now))?;
        (!self.logouts.has(text)).then(|| owner.clone())
    }

    /// Is a credential still valid?
    pub(crate) fn still_counts(&self, shown: &Credential) -> bool {
        match shown {
            Credential::Token(token) => self.owner(token).is_some(),
            Credential::Cookie(text) => self.owner_of_cookie(text).is_some(),
        }
    }

    /// Revokes a cookie for good.
    ///
    /// # Errors
    /// If that cannot be stored. This server remembers it nevertheless.
    pub(crate) fn log_out(&self, text: &str) -> io::Result<()> {
        match (self.owner_of_cookie(text), Cookie::until(text)) {
            (Some(_), Some(until)) => self.logouts.add(text, until, self.now()),
            _ => Ok(()),
        }
    }

    /// Opens streams for a caller, unless there would be more than `most`.
    pub(crate) fn open_streams(&self, caller: &Caller, many: usize, most: usize) -> bool {
        let mut state = self.state();
        let open = state.streams.entry(caller.name.clone()).or_default();
        let may = *open + many <= most;
        *open += if may { many } else { 0 };
        may
    }

    /// Closes streams of a caller.
    pub(crate) fn close_streams(&self, caller: &Caller, many: usize) {
        if let Some(open) = self.state().streams.get_mut(&caller.name) {
            *open = open.saturating_sub(many);
        }
    }
}

/// The result of a browser's login. Both parts are needed.
#[derive(Clone, Debug)]
pub(crate) struct BrowserLogin {
    /// For the browser's cookies.
    pub(crate) cookie: String,
    /// For the page's own storage.
    pub(crate) key: String,
}

/// A cookie: its expiry, random bits, and a signature over both.
#[derive(Clone, Debug)]
struct Cookie(String);

impl Cookie {
    fn new(owner: &NamedToken, until: i64) -> io::Result<Self> {
        let said = format!("{until}.{}", Token::generate()?.reveal());
        Ok(Self(format!("{said}.{}", signature(owner, &said))))
    }

    /// Did this owner's token sign it, and is it still valid?
    fn is_signed(text: &str, owner: &NamedToken, now: i64) -> bool {
        let Some((said, shown)) = text.rsplit_once('.') else { return false };
        let (Some(shown), Some(right)) =
            (Token::parse(shown), Token::parse(&signature(owner, said)))
        else {
            return false;
        };
        shown.matches(&right) && Self::until(text).is_some_and(|until| until > now)
    }

    /// Its expiry.
    fn until(text: &str) -> Option<i64> {
        text.split('.').next()?.parse().ok()
    }
}

fn signature(owner: &NamedToken, said: &str) -> String {
    keyed(owner, &format!("{} {said}", owner.name))
}

/// The key of a cookie. Names have no line breaks, so the signature cannot be one of something
/// else.
fn page_key(owner: &NamedToken, cookie: &str) -> String {
    keyed(owner, &format!("page key\n{}\n{cookie}", owner.name))
}

fn keyed(owner: &NamedToken, text: &str) -> String {
    URL_SAFE_NO_PAD.encode(blake3::keyed_hash(owner.token.bytes(), text.as_bytes()).as_bytes())
}

impl State {
    /// The owner of a link, which is used up.
    fn take_link(&mut self, code: &str, now: i64) -> Option<NamedToken> {
        self.links.retain(|link| link.until > now);
        let shown = Token::parse(code)?;
        let found = self.links.iter().position(|link| link.secret.matches(&shown))?;
        Some(self.links.swap_remove(found).owner)
    }

    /// Counts a wrong token. Guessing 256 bits is impossible, so the right token is accepted
    /// however many wrong ones others send.
    fn fail(&mut self, now: i64) -> Refused {
        self.failures.retain(|at| now - at < MINUTE);
        if self.failures.len() >= FAILURES {
            return Refused::TooMany;
        }
        self.failures.push(now);
        Refused::Unknown
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicI64, Ordering};

    use stepwell::clock::SystemClock;
    use stepwell::model::Time;

    use super::*;
    use crate::security::Role;

    fn named(name: &str, role: Role, token: &Token) -> NamedToken {
        NamedToken { name: name.to_owned(), role, is_user: true, token: token.clone() }
    }

    fn with(tokens: Vec<NamedToken>, logouts: Option<PathBuf>) -> Logins {
        let tokens = Tokens::new(tokens).unwrap();
        Logins::new(tokens, Logouts::new(logouts), Arc::new(SystemClock))
    }

    fn logins() -> (Logins, Token) {
        let token = Token::generate().unwrap();
        (with(vec![named("ann", Role::Operator, &token)], None), token)
    }

    /// The caller of a login.
    fn of(logins: &Logins, login: &BrowserLogin) -> Option<Caller> {
        logins.by_cookie(&login.cookie, &login.key).map(|(caller, _)| caller)
    }

    #[test]
    fn a_cookie_counts_only_with_its_own_key() {
        let (logins, token) = logins();
        let [one, other] = [(); 2].map(|()| logins.redeem(&token.reveal()).unwrap());
        assert!(of(&logins, &one).is_some() && of(&logins, &other).is_some());
        let (_, signature) = one.cookie.rsplit_once('.').unwrap();
        for key in ["", &other.key, signature, &one.cookie, &Token::generate().unwrap().reveal()] {
            assert!(logins.by_cookie(&one.cookie, key).is_none(), "{key}");
        }
    }

    #[test]
    fn a_token_names_its_owner_and_others_are_refused() {
        let (logins, token) = logins();
        assert_eq!(logins.by_token(&token.reveal()).unwrap().0.name, "ann");
        let wrong = Token::generate().unwrap().reveal();
        assert_eq!(logins.by_token(&wrong).unwrap_err(), Refused::Unknown);
    }

    #[test]
    fn a_link_works_once_and_its_cookie_until_it_is_taken_back() {
        let (logins, token) = logins();
        let (ann, _) = logins.by_token(&token.reveal()).unwrap();
        let code = logins.link().unwrap().code.reveal();
        let BrowserLogin { cookie, key } = logins.redeem(&code).unwrap();
        assert_eq!(logins.redeem(&code).unwrap_err(), Refused::Unknown);
        let (found, shown) = logins.by_cookie(&cookie, &key).unwrap();
        assert!(found == ann && logins.still_counts(&shown));
        logins.log_out(&cookie).unwrap();
        assert!(logins.by_cookie(&cookie, &key).is_none() && !logins.still_counts(&shown));
    }

    /// A clock that only a test moves.
    #[derive(Debug, Default)]
    struct Standing(AtomicI64);

    impl Clock for Standing {
        fn now(&self) -> Time {
            Time::from_micros(self.0.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn a_link_ends_after_a_minute_and_a_cookie_after_thirty_days() {
        let (clock, token) = (Arc::new(Standing::default()), Token::generate().unwrap());
        let tokens = Tokens::new(vec![named("ann", Role::Operator, &token)]).unwrap();
        let logins = Logins::new(tokens, Logouts::new(None), Arc::clone(&clock) as Arc<dyn Clock>);
        let [late, in_time] = [(); 2].map(|()| logins.link().unwrap().code.reveal());
        clock.0.store(MINUTE - 1, Ordering::Relaxed);
        let BrowserLogin { cookie, key } = logins.redeem(&in_time).unwrap();
        clock.0.store(MINUTE, Ordering::Relaxed);
        assert_eq!(logins.redeem(&late).unwrap_err(), Refused::Unknown);
        let (_, shown) = logins.by_cookie(&cookie, &key).unwrap();
        let over = MINUTE - 1 + 30 * 24 * 60 * MINUTE;
        clock.0.store(over - 1, Ordering::Relaxed);
        assert!(logins.by_cookie(&cookie, &key).is_some());
        clock.0.store(over, Ordering::Relaxed);
        assert!(logins.by_cookie(&cookie, &key).is_none() && !logins.still_counts(&shown));
        // Wrong tokens are counted for a minute only.
        for _ in 0..FAILURES {
            assert_eq!(logins.by_token("wrong").unwrap_err(), Refused::Unknown);
        }
        assert_eq!(logins.by_token("wrong").unwrap_err(), Refused::TooMany);
        clock.0.store(over + MINUTE, Ordering::Relaxed);
        assert_eq!(logins.by_token("wrong").unwrap_err(), Refused::Unknown);
    }

    #[test]
    fn a_cookie_that_was_taken_back_stays_so_after_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let (path, token) = (folder.path().join("logouts"), Token::generate().unwrap());
        let start = || with(vec![named("ann", Role::Operator, &token)], Some(path.clone()));
        let logins = start();
        let [out, kept] = [(); 2].map(|()| logins.redeem(&token.reveal()).unwrap());
        logins.log_out(&out.cookie).unwrap();
        let again = start();
        assert!(of(&again, &out).is_none());
        assert!(of(&again, &kept).is_some());
    }

    #[test]
    fn a_cookie_lets_its_owner_do_what_the_token_lets_them() {
        let [operator, viewer] = [(); 2].map(|()| Token::generate().unwrap());
        let both = vec![
            named("ann", Role::Operator, &operator),
            NamedToken { is_user: false, ..named("victor", Role::Viewer, &viewer) },
        ];
        let logins = with(both, None);
        for token in [operator, viewer] {
            let login = logins.redeem(&token.reveal()).unwrap();
            assert_eq!(of(&logins, &login).unwrap(), logins.by_token(&token.reveal()).unwrap().0);
        }
    }

    #[test]
    fn a_cookie_outlives_the_server_and_ends_with_its_token() {
        let (logins, token) = logins();
        let login = logins.redeem(&token.reveal()).unwrap();
        let again = with(vec![named("ann", Role::Viewer, &token)], None);
        assert_eq!(of(&again, &login).unwrap().role, Role::Viewer);
        let renewed = with(vec![named("ann", Role::Viewer, &Token::generate().unwrap())], None);
        assert!(of(&renewed, &login).is_none());
        let (said, signature) = login.cookie.rsplit_once('.').unwrap();
        let (_, random) = said.split_once('.').unwrap();
        for forged in
            [format!("9999999999999999.{random}.{signature}"), said.to_owned(), String::new()]
        {
            assert!(again.by_cookie(&forged, &login.key).is_none(), "{forged}");
        }
    }

    #[test]
    fn wrong_tokens_are_counted_and_keep_nobody_else_out() {
        let (logins, token) = logins();
        for _ in 0..FAILURES {
            assert_eq!(logins.by_token("wrong").unwrap_err(), Refused::Unknown);
        }
        assert_eq!(logins.by_token("wrong").unwrap_err(), Refused::TooMany);
        assert_eq!(logins.redeem("wrong").unwrap_err(), Refused::TooMany);
        assert!(logins.by_token(&token.reveal()).is_ok());
        assert!(logins.redeem(&token.reveal()).is_ok());
    }
}
