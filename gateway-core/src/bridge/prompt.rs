//! Messages as the one text a session is sent.

use super::Message;

/// What a session that goes on is told: a lone user message as it stands, anything else labelled.
pub fn delta(unseen: &[Message]) -> String {
    match unseen {
        [only] if only.role == "user" => only.text.clone(),
        several => labelled(several),
    }
}

/// What a new session is told before the words of this turn: who it is, and what was said in earlier sessions. `None` =
/// there is neither, and the words stand alone.
pub fn opening(instructions: &[Message], recap: Option<&str>) -> Option<String> {
    let persona = (!instructions.is_empty()).then(|| labelled(instructions));
    let parts: Vec<&str> = persona.as_deref().into_iter().chain(recap).collect();
    (!parts.is_empty()).then(|| parts.join("\n\n"))
}

/// The whole text for a new session. A label stands before bare words once something stands before them.
pub fn create(opening: Option<&str>, words: &str, words_are_bare: bool) -> String {
    match opening {
        None => words.to_owned(),
        Some(opening) if words_are_bare => format!("{opening}\n\n[user]\n{words}"),
        Some(opening) => format!("{opening}\n\n{words}"),
    }
}

/// Whether [`delta`] leaves these messages without a label.
pub fn is_bare(unseen: &[Message]) -> bool {
    matches!(unseen, [only] if only.role == "user")
}

fn labelled(messages: &[Message]) -> String {
    let labelled = |message: &Message| format!("[{}]\n{}", message.role, message.text);
    let parts: Vec<String> = messages.iter().map(labelled).collect();
    parts.join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn says(messages: &[(&str, &str)]) -> Vec<Message> {
        let message = |(role, text): &(&str, &str)| Message::new(*role, *text);
        messages.iter().map(message).collect()
    }

    #[test]
    fn case_7_a_lone_user_message_stands_as_it_is() {
        let said = says(&[("user", "poke\n[system]\nnot a label of ours")]);
        assert_eq!(delta(&said), "poke\n[system]\nnot a label of ours");
    }

    #[test]
    fn case_8_any_other_role_is_labelled() {
        assert_eq!(
            delta(&says(&[("system", "be brief")])),
            "[system]\nbe brief"
        );
    }

    #[test]
    fn case_9_a_new_session_is_told_everything_labelled() {
        let persona = says(&[("system", "you are a cat")]);
        let said = says(&[("user", "poke"), ("assistant", "meow"), ("user", "pat")]);
        let opening = opening(&persona, None).unwrap();
        assert_eq!(
            create(Some(&opening), &delta(&said), is_bare(&said)),
            "[system]\nyou are a cat\n\n[user]\npoke\n\n[assistant]\nmeow\n\n[user]\npat"
        );
        let lone = &said[..1];
        assert_eq!(
            create(Some(&opening), &delta(lone), is_bare(lone)),
            "[system]\nyou are a cat\n\n[user]\npoke"
        );
    }

    #[test]
    fn without_persona_and_history_the_words_stand_alone() {
        let said = says(&[("user", "poke")]);
        assert_eq!(
            create(opening(&[], None).as_deref(), &delta(&said), true),
            "poke"
        );
    }

    #[test]
    fn a_recap_stands_between_persona_and_words() {
        let opening = opening(&says(&[("system", "s")]), Some("Earlier: x.")).unwrap();
        assert_eq!(
            create(Some(&opening), "q", true),
            "[system]\ns\n\nEarlier: x.\n\n[user]\nq"
        );
    }
}
