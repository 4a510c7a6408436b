//! Which logins draw on one allowance: quota groups (note N9 of the decision contract).
//!
//! Strong keys (account id, fingerprint) at one upstream prove that two logins are one, transitively through every known
//! login. A mail address is weak: it joins only logins without a strong key, and only where their plans do not differ.
//! A metered login never shares with a subscription. What is not proven stays apart.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::ids::SubscriptionId;

/// A login as far as its quota is concerned. `None` = unknown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    pub id: SubscriptionId,
    /// The company that meters it.
    pub upstream: Option<String>,
    pub account_id: Option<String>,
    /// A keyed hash of what stays the same for as long as the login is the same.
    pub fingerprint: Option<String>,
    pub email: Option<String>,
    pub plan: Option<String>,
    pub metered: bool,
}

impl Login {
    fn has_strong_key(&self) -> bool {
        self.account_id.is_some() || self.fingerprint.is_some()
    }
}

/// Who shares a quota with whom.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuotaGroups {
    /// Folded subscription name to the folded name that stands for its group.
    heads: HashMap<String, String>,
    /// The members of each group of several, folded and in order, by the name that stands for it.
    members: HashMap<String, Vec<String>>,
}

impl QuotaGroups {
    /// Groups the logins.
    pub fn of(logins: &[Login]) -> Self {
        let mut sets = Sets::new(logins.len());
        join_equal(logins, &mut sets, |login| Some(login.id.key().to_owned()));
        join_equal(logins, &mut sets, |login| {
            strong_key(login, "account", &login.account_id)
        });
        join_equal(logins, &mut sets, |login| {
            strong_key(login, "fingerprint", &login.fingerprint)
        });
        let plans = plans_by_mail(logins);
        join_equal(logins, &mut sets, |login| weak_key(login, &plans));
        let heads: HashMap<String, String> = logins
            .iter()
            .enumerate()
            .filter_map(|(at, login)| {
                let head = logins.get(sets.head(at))?;
                Some((login.id.key().to_owned(), head.id.key().to_owned()))
            })
            .collect();
        let mut members: HashMap<String, Vec<String>> = HashMap::new();
        for (name, head) in &heads {
            members.entry(head.clone()).or_default().push(name.clone());
        }
        members.retain(|_, names| names.len() > 1);
        members.values_mut().for_each(|names| names.sort_unstable());
        Self { heads, members }
    }

    /// The other members of a subscription's group, folded, in order; none = it shares with nobody known.
    pub fn others<'a>(&'a self, id: &'a SubscriptionId) -> impl Iterator<Item = &'a str> {
        let members = self.members.get(self.head(id)).into_iter().flatten();
        members
            .map(String::as_str)
            .filter(move |name| *name != id.key())
    }

    /// The folded name that stands for a group of several; `None` = the subscription shares with nobody known.
    pub fn shared_head(&self, id: &SubscriptionId) -> Option<&str> {
        let (head, _) = self.members.get_key_value(self.heads.get(id.key())?)?;
        Some(head)
    }

    /// The folded name that stands for a subscription's group; its own where it shares with nobody known.
    pub fn head<'a>(&'a self, id: &'a SubscriptionId) -> &'a str {
        self.heads.get(id.key()).map_or(id.key(), String::as_str)
    }
}

/// Company, kind of billing and a folded key: what two logins must share to be one.
fn strong_key(login: &Login, kind: &str, key: &Option<String>) -> Option<String> {
    Some(join(&[
        kind,
        login.upstream.as_deref()?,
        billing(login),
        key.as_deref()?,
    ]))
}

fn mail_key(login: &Login) -> Option<String> {
    if login.has_strong_key() {
        return None;
    }
    let mail = login.email.as_deref()?.to_lowercase();
    Some(join(&[
        "mail",
        login.upstream.as_deref()?,
        billing(login),
        &mail,
    ]))
}

/// Like [`mail_key`], with the plan where one mail has several; a login without a plan beside two known ones is left alone.
fn weak_key(login: &Login, plans: &HashMap<String, Vec<String>>) -> Option<String> {
    let mail = mail_key(login)?;
    if plans.get(&mail).is_none_or(|plans| plans.len() < 2) {
        return Some(mail);
    }
    let plan = login.plan.as_deref()?.to_lowercase();
    Some(join(&[&mail, &plan]))
}

fn plans_by_mail(logins: &[Login]) -> HashMap<String, Vec<String>> {
    let mut plans: HashMap<String, Vec<String>> = HashMap::new();
    for login in logins {
        if let (Some(mail), Some(plan)) = (mail_key(login), &login.plan) {
            let known = plans.entry(mail).or_default();
            let plan = plan.to_lowercase();
            if !known.contains(&plan) {
                known.push(plan);
            }
        }
    }
    plans
}

fn billing(login: &Login) -> &'static str {
    if login.metered { "metered" } else { "plan" }
}

fn join(parts: &[&str]) -> String {
    parts.join("\u{1f}")
}

fn join_equal(logins: &[Login], sets: &mut Sets, key: impl Fn(&Login) -> Option<String>) {
    let mut first: HashMap<String, usize> = HashMap::new();
    for (at, login) in logins.iter().enumerate() {
        if let Some(key) = key(login) {
            let head = *first.entry(key).or_insert(at);
            sets.join(head, at);
        }
    }
}

/// Disjoint sets over positions; the lowest position is the head.
struct Sets {
    parents: Vec<usize>,
}

impl Sets {
    fn new(len: usize) -> Self {
        Self {
            parents: (0..len).collect(),
        }
    }

    fn head(&self, mut at: usize) -> usize {
        while let Some(&parent) = self.parents.get(at)
            && parent != at
        {
            at = parent;
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.head(a), self.head(b));
        let (low, high) = (a.min(b), a.max(b));
        if let Some(parent) = self.parents.get_mut(high) {
            *parent = low;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(id: &str, keys: &str) -> Login {
        let mut login = Login {
            id: id.into(),
            upstream: Some("anthropic".into()),
            account_id: None,
            fingerprint: None,
            email: None,
            plan: None,
            metered: false,
        };
        for key in keys.split_whitespace() {
            let (name, value) = key.split_once('=').unwrap();
            let value = Some(value.to_owned());
            match name {
                "acc" => login.account_id = value,
                "fp" => login.fingerprint = value,
                "mail" => login.email = value,
                "plan" => login.plan = value,
                "up" => login.upstream = value,
                "metered" => login.metered = true,
                other => panic!("{other}"),
            }
        }
        login
    }

    #[test]
    fn n9_who_shares_with_whom() {
        let rows: &[(&str, &[&str], &str)] = &[
            ("equal account", &["acc=o", "acc=o"], "aa"),
            (
                "equal account elsewhere",
                &["acc=o", "acc=o up=openai"],
                "ab",
            ),
            (
                "an equal strong key beats a differing one",
                &["acc=o fp=1", "acc=o fp=2"],
                "aa",
            ),
            ("transitively", &["acc=o", "fp=1", "acc=o fp=1"], "aaa"),
            ("metered apart", &["acc=o", "acc=o metered=1"], "ab"),
            (
                "equal mail, nothing strong",
                &["mail=X@y", "mail=x@Y"],
                "aa",
            ),
            (
                "mail beside a strong key",
                &["mail=x@y", "mail=x@y acc=o"],
                "ab",
            ),
            (
                "mails with differing plans",
                &["mail=x plan=pro", "mail=x plan=max"],
                "ab",
            ),
            ("one plan unknown", &["mail=x plan=pro", "mail=x"], "aa"),
            (
                "no plan beside two",
                &[
                    "mail=x plan=pro",
                    "mail=x",
                    "mail=x plan=max",
                    "mail=x plan=Pro",
                ],
                "abca",
            ),
            ("nothing known", &["", ""], "ab"),
        ];
        for (name, logins, want) in rows {
            let logins: Vec<_> = logins
                .iter()
                .zip('a'..)
                .map(|(keys, id)| login(&id.to_string(), keys))
                .collect();
            let groups = QuotaGroups::of(&logins);
            let got: String = logins.iter().map(|login| groups.head(&login.id)).collect();
            assert_eq!(&got, want, "{name}");
            for login in &logins {
                let alone = want.matches(groups.head(&login.id)).count() == 1;
                assert_eq!(groups.others(&login.id).count() == 0, alone, "{name}");
                assert_eq!(groups.shared_head(&login.id).is_none(), alone, "{name}");
            }
        }
    }

    #[test]
    fn a_login_nobody_knows_stands_for_itself() {
        let stranger = SubscriptionId::new("Stranger");
        assert_eq!(QuotaGroups::default().head(&stranger), "stranger");
    }
}
