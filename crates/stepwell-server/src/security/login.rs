//! Logins: tokens of programs, one-time links and cookies of browsers.
//!
//! A cookie is signed with its owner's token, and nothing of it is kept here: it outlives a restart
//! of the server, and ends with the token.

use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use stepwell::Clock;

use super::{Caller, NamedToken, Token};

/// A minute, in the microseconds that a clock tells.
const MINUTE: i64 = 60_000_000;

/// How long a one-time link lets somebody in.
const LINK_LIFE: i64 = MINUTE;

/// How long a browser stays logged in.
const COOKIE_LIFE: i64 = 30 * 24 * 60 * MINUTE;

/// How many wrong tokens are looked at in a minute.
const FAILURES: usize = 10;

/// Who is let in, and how.
#[derive(Debug)]
pub(crate) struct Logins {
    tokens: Vec<NamedToken>,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    links: Vec<Pass>,
    /// Cookies whose owners logged out.
    logged_out: HashSet<String>,
    /// When somebody showed a wrong token.
    failures: Vec<i64>,
    streams: HashMap<String, usize>,
}

#[derive(Clone, Debug)]
struct Pass {
    secret: Token,
    caller: Caller,
    until: i64,
}

/// A link that logs a browser in, once.
#[derive(Clone, Debug)]
pub struct OneTimeLink {
    /// What is behind `/login#`.
    pub code: Token,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// What they showed is not known.
    Unknown,
    /// There were too many wrong ones: later.
    TooMany,
}

impl Logins {
    pub(crate) fn new(tokens: Vec<NamedToken>, clock: Arc<dyn Clock>) -> Self {
        Self { tokens, clock, state: Mutex::default() }
    }

    fn now(&self) -> i64 {
        self.clock.now().as_micros()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who has this token.
    pub(crate) fn by_token(&self, text: &str) -> Result<Caller, Refused> {
        let shown = Token::parse(text);
        // All are looked at, so that the time says nothing of which one it was.
        let found = self.tokens.iter().fold(None, |found, known| match &shown {
            Some(shown) if known.token.matches(shown) => Some(known),
            _ => found,
        });
        let Some(found) = found else { return Err(self.state().fail(self.now())) };
        Ok(found.caller())
    }

    /// A link for a browser of that caller.
    pub(crate) fn link(&self, caller: &Caller) -> io::Result<OneTimeLink> {
        let code = Token::generate()?;
        let until = self.now() + LINK_LIFE;
        let pass = Pass { secret: code.clone(), caller: caller.clone(), until };
        self.state().links.push(pass);
        Ok(OneTimeLink { code })
    }

    /// Takes a link, which works once, or a token, and gives a cookie for it.
    pub(crate) fn redeem(&self, code: &str) -> Result<Cookie, Refused> {
        let mut state = self.state();
        let now = self.now();
        state.links.retain(|link| link.until > now);
        let shown = Token::parse(code);
        let found = state
            .links
            .iter()
            .position(|link| shown.as_ref().is_some_and(|shown| link.secret.matches(shown)));
        let caller = match found {
            Some(found) => state.links.swap_remove(found).caller,
            None => {
                drop(state);
                // Whoever has a token may log in with it, too.
                let caller = self.by_token(code)?;
                state = self.state();
                caller
            }
        };
        drop(state);
        let signer = self.tokens.iter().find(|known| known.name == caller.name);
        let signer = signer.ok_or(Refused::Unknown)?;
        Cookie::new(signer, self.now() + COOKIE_LIFE).map_err(|_| Refused::Unknown)
    }

    /// Whose cookie it is.
    pub(crate) fn by_cookie(&self, text: &str) -> Option<Caller> {
        let owner = self.tokens.iter().find(|known| Cookie::is_signed(text, known, self.now()))?;
        if self.state().logged_out.contains(text) {
            return None;
        }
        Some(owner.caller())
    }

    /// Takes a cookie back.
    pub(crate) fn log_out(&self, text: &str) {
        if self.by_cookie(text).is_some() {
            self.state().logged_out.insert(text.to_owned());
        }
    }

    /// Opens a stream for a caller, unless they have too many.
    pub(crate) fn open_stream(&self, caller: &Caller, most: usize) -> bool {
        let mut state = self.state();
        let open = state.streams.entry(caller.name.clone()).or_default();
        let may = *open < most;
        *open += usize::from(may);
        may
    }

    /// A stream of a caller ended.
    pub(crate) fn close_stream(&self, caller: &Caller) {
        if let Some(open) = self.state().streams.get_mut(&caller.name) {
            *open = open.saturating_sub(1);
        }
    }
}

/// A cookie: until when it counts, something random, and a signature over both.
#[derive(Clone, Debug)]
pub(crate) struct Cookie(String);

impl Cookie {
    fn new(owner: &NamedToken, until: i64) -> io::Result<Self> {
        let said = format!("{until}.{}", Token::generate()?.reveal());
        Ok(Self(format!("{said}.{}", signature(owner, &said))))
    }

    /// Its text, for the browser.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Did this owner's token sign it, and does it still count?
    fn is_signed(text: &str, owner: &NamedToken, now: i64) -> bool {
        let Some((said, shown)) = text.rsplit_once('.') else { return false };
        let (Some(shown), Some(right)) =
            (Token::parse(shown), Token::parse(&signature(owner, said)))
        else {
            return false;
        };
        let until = said.split('.').next().and_then(|until| until.parse::<i64>().ok());
        shown.matches(&right) && until.is_some_and(|until| until > now)
    }
}

fn signature(owner: &NamedToken, said: &str) -> String {
    let signed = format!("{} {said}", owner.name);
    let signature = blake3::keyed_hash(owner.token.bytes(), signed.as_bytes());
    URL_SAFE_NO_PAD.encode(signature.as_bytes())
}

impl State {
    /// Counts a wrong token. Nobody can guess one of 256 bits, so those who have the right one are
    /// let in however many wrong ones others show.
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
    use stepwell::SystemClock;

    use super::*;
    use crate::security::Role;

    fn logins() -> (Logins, Token) {
        let token = Token::generate().unwrap();
        let named = NamedToken {
            name: "ann".to_owned(),
            role: Role::Operator,
            is_user: true,
            token: token.clone(),
        };
        (Logins::new(vec![named], Arc::new(SystemClock)), token)
    }

    #[test]
    fn a_token_names_its_owner_and_others_are_refused() {
        let (logins, token) = logins();
        assert_eq!(logins.by_token(&token.reveal()).unwrap().name, "ann");
        let wrong = Token::generate().unwrap().reveal();
        assert_eq!(logins.by_token(&wrong), Err(Refused::Unknown));
    }

    #[test]
    fn a_link_works_once_and_its_cookie_until_it_is_taken_back() {
        let (logins, token) = logins();
        let caller = logins.by_token(&token.reveal()).unwrap();
        let code = logins.link(&caller).unwrap().code.reveal();
        let cookie = logins.redeem(&code).unwrap().as_str().to_owned();
        assert_eq!(logins.redeem(&code).unwrap_err(), Refused::Unknown);
        assert_eq!(logins.by_cookie(&cookie), Some(caller));
        logins.log_out(&cookie);
        assert_eq!(logins.by_cookie(&cookie), None);
    }

    #[test]
    fn a_cookie_outlives_the_server_and_ends_with_its_token() {
        let (logins, token) = logins();
        let cookie = logins.redeem(&token.reveal()).unwrap().as_str().to_owned();
        let named =
            |token| NamedToken { name: "ann".to_owned(), role: Role::Viewer, is_user: true, token };
        let again = Logins::new(vec![named(token)], Arc::new(SystemClock));
        assert_eq!(again.by_cookie(&cookie).unwrap().role, Role::Viewer);
        let renewed = Logins::new(vec![named(Token::generate().unwrap())], Arc::new(SystemClock));
        assert_eq!(renewed.by_cookie(&cookie), None);
        let (said, signature) = cookie.rsplit_once('.').unwrap();
        let (_, random) = said.split_once('.').unwrap();
        for forged in
            [format!("9999999999999999.{random}.{signature}"), said.to_owned(), String::new()]
        {
            assert_eq!(again.by_cookie(&forged), None, "{forged}");
        }
    }

    #[test]
    fn wrong_tokens_are_counted_and_keep_nobody_else_out() {
        let (logins, token) = logins();
        for _ in 0..FAILURES {
            assert_eq!(logins.by_token("wrong"), Err(Refused::Unknown));
        }
        assert_eq!(logins.by_token("wrong"), Err(Refused::TooMany));
        assert_eq!(logins.redeem("wrong").unwrap_err(), Refused::TooMany);
        assert!(logins.by_token(&token.reveal()).is_ok());
        assert!(logins.redeem(&token.reveal()).is_ok());
    }
}
