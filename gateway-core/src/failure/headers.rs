//! A small header map: names without case, several values each, order kept. Not an HTTP library's, because headers also
//! come inside JSON bodies and websocket messages.

/// Longer maps are cut: no server sends so many, and every lookup walks the list.
const MOST: usize = 256;

/// Response headers, wherever they were found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, String)>);

impl Headers {
    /// Adds a value; earlier ones of the same name win on [`Headers::get`].
    pub fn add(&mut self, name: &str, value: &str) {
        if self.0.len() < MOST {
            let pair = (name.trim().to_ascii_lowercase(), value.trim().to_owned());
            self.0.push(pair);
        }
    }

    /// Returns the first value of a lower-case name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.iter()
            .find_map(|(known, value)| (known == name).then_some(value))
    }

    /// Every pair, names in lower case.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: AsRef<str>, V: AsRef<str>> FromIterator<(N, V)> for Headers {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        let mut headers = Self::default();
        for (name, value) in pairs {
            headers.add(name.as_ref(), value.as_ref());
        }
        headers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_case_and_the_first_value_wins() {
        let headers: Headers = [("Retry-After", " 5 "), ("retry-after", "9")]
            .into_iter()
            .collect();
        assert_eq!(headers.get("retry-after"), Some("5"));
        assert_eq!(headers.iter().count(), 2);
        assert_eq!(headers.get("Retry-After"), None);
    }

    #[test]
    fn a_flood_of_headers_is_cut() {
        let headers: Headers = (0..100_000).map(|n| (format!("x-{n}"), "v")).collect();
        assert_eq!(headers.iter().count(), MOST);
    }
}
