//! The program's own todo list, from the results of its todo tools: `TodoWrite` (the whole list each time) and
//! `TaskCreate`, `TaskUpdate`, `TaskList` (one entry each, ids given by the program; seen in 2.1.332).

use gateway_core::event::{Todo, TodoStatus};
use serde_json::Value;

/// The list as far as this attempt has seen it.
#[derive(Debug, Default)]
pub(super) struct Todos(Vec<Todo>);

impl Todos {
    /// Takes the successful result of a tool; returns the list if it changed.
    pub(super) fn after(&mut self, tool: &str, input: &Value, result: &Value) -> Option<Vec<Todo>> {
        let before = self.0.clone();
        match tool {
            "TodoWrite" => self.0 = listed(input.get("todos"), "content"),
            "TaskCreate" => self.created(result.get("task")?),
            "TaskUpdate" => self.updated(input),
            "TaskList" => self.0 = listed(result.get("tasks"), "subject"),
            _ => {}
        }
        (self.0 != before).then(|| self.0.clone())
    }

    fn created(&mut self, task: &Value) {
        if let Some(id) = text(task, "id") {
            self.entry(id).content = text(task, "subject").unwrap_or_default().to_owned();
        }
    }

    fn updated(&mut self, input: &Value) {
        let Some(id) = text(input, "taskId") else {
            return;
        };
        let entry = self.entry(id);
        if let Some(subject) = text(input, "subject") {
            subject.clone_into(&mut entry.content);
        }
        if let Some(word) = text(input, "status") {
            entry.status = status(word);
        }
    }

    /// The entry with this id. An update may name one of an earlier turn, whose words were not seen here.
    fn entry(&mut self, id: &str) -> &mut Todo {
        let at = self.0.iter().position(|todo| todo.id == id);
        let at = at.unwrap_or_else(|| {
            self.0.push(Todo {
                id: id.to_owned(),
                content: format!("task {id}"),
                status: TodoStatus::Pending,
            });
            self.0.len() - 1
        });
        self.0.get_mut(at).expect("found or just pushed")
    }
}

fn listed(entries: Option<&Value>, words: &str) -> Vec<Todo> {
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let todo = |(at, entry): (usize, &Value)| Todo {
        id: text(entry, "id").map_or_else(|| (at + 1).to_string(), str::to_owned),
        content: text(entry, words).unwrap_or_default().to_owned(),
        status: text(entry, "status").map_or(TodoStatus::Pending, status),
    };
    entries.enumerate().map(todo).collect()
}

fn status(word: &str) -> TodoStatus {
    match word {
        "in_progress" => TodoStatus::InProgress,
        "completed" => TodoStatus::Completed,
        "deleted" | "cancelled" => TodoStatus::Cancelled,
        _ => TodoStatus::Pending,
    }
}

fn text<'a>(value: &'a Value, key: &str) -> Option<&'a str> {
    value.get(key).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn shown(list: Option<Vec<Todo>>) -> String {
        let line = |todo: &Todo| format!("{} {} {}", todo.id, todo.status.word(), todo.content);
        list.map_or("unchanged".to_owned(), |list| {
            list.iter().map(line).collect::<Vec<_>>().join("; ")
        })
    }

    #[test]
    fn each_todo_tool_changes_the_list() {
        let mut todos = Todos::default();
        let none = Value::Null;
        let rows = [
            (
                "TaskCreate",
                json!({}),
                json!({"task": {"id": "1", "subject": "first"}}),
                "1 pending first",
            ),
            (
                "TaskUpdate",
                json!({"taskId": "1", "status": "in_progress"}),
                none.clone(),
                "1 in_progress first",
            ),
            (
                "TaskUpdate",
                json!({"taskId": "1", "status": "in_progress"}),
                none.clone(),
                "unchanged",
            ),
            (
                "TaskUpdate",
                json!({"taskId": "9", "status": "deleted"}),
                none.clone(),
                "1 in_progress first; 9 cancelled task 9",
            ),
            (
                "TaskList",
                json!({}),
                json!({"tasks": [{"id": "2", "subject": "b", "status": "completed"}]}),
                "2 completed b",
            ),
            (
                "TodoWrite",
                json!({"todos": [{"content": "x", "status": "pending"}]}),
                none.clone(),
                "1 pending x",
            ),
            ("Read", json!({}), none.clone(), "unchanged"),
            ("TaskCreate", json!({}), none, "unchanged"),
        ];
        for (tool, input, result, expected) in rows {
            assert_eq!(
                shown(todos.after(tool, &input, &result)),
                expected,
                "{tool} {input}"
            );
        }
    }
}
