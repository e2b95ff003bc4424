//! The origins of the server, as browsers name them.

use std::net::SocketAddr;

/// A scheme and a host, such as `https://example.org` or `http://127.0.0.1:4000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    scheme: String,
    /// The host and port, as in the header `Host`.
    host: String,
}

impl Origin {
    /// Parses the server's public origin: `https://host` or `https://host:port`, without a path.
    /// TLS is required, because tokens and cookies would be readable otherwise.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, host) = text.trim_end_matches('/').split_once("://")?;
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
        let is_host = !host.is_empty() && host.chars().all(plain);
        (scheme == "https" && is_host)
            .then(|| Self { scheme: scheme.to_owned(), host: host.to_ascii_lowercase() })
    }

    /// The origins of a loopback address.
    pub(crate) fn of_listener(address: SocketAddr, scheme: &str) -> Vec<Self> {
        let port = address.port();
        let host = |host: String| Self { scheme: scheme.to_owned(), host };
        let mut names = vec![host(address.to_string())];
        if address.ip().is_loopback() {
            names.extend([
                host(format!("localhost:{port}")),
                host(format!("127.0.0.1:{port}")),
                host(format!("[::1]:{port}")),
            ]);
        }
        names
    }

    /// Is this its host, as a request names it?
    pub(crate) fn is_host(&self, host: &str) -> bool {
        self.host.eq_ignore_ascii_case(host)
    }

    /// Is the traffic encrypted?
    pub(crate) fn is_secure(&self) -> bool {
        self.scheme == "https"
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_a_scheme_and_a_host_and_nothing_else() {
        assert_eq!(
            Origin::parse("https://Example.org/").unwrap().to_string(),
            "https://example.org"
        );
        for wrong in
            ["example.org", "http://a", "https://a/b", "https://", "https://a b", "https://a@b"]
        {
            assert_eq!(Origin::parse(wrong), None, "{wrong}");
        }
    }
}
