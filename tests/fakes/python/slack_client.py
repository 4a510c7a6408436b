"""Slack's own client (slack_bolt 1.30, slack_sdk 3.48; MIT) as an app in front of the fake Slack.

usage: slack_client.py API_URL BOT_TOKEN APP_TOKEN

The app: answers a mention in its thread, /usage privately through response_url, a button by changing its message, and
"long" with an uploaded file. It prints "ready" once its socket is open and ends when its standard input does.
"""

import sys

from slack_bolt import App
from slack_bolt.adapter.socket_mode import SocketModeHandler
from slack_sdk import WebClient
from slack_sdk.http_retry.builtin_handlers import RateLimitErrorRetryHandler

api_url, bot_token, app_token = sys.argv[1:]
client = WebClient(token=bot_token, base_url=api_url + "/")
client.retry_handlers.append(RateLimitErrorRetryHandler(max_retry_count=3))
app = App(client=client, token_verification_enabled=True, process_before_response=False)

BUTTON = {
    "type": "actions",
    "elements": [
        {
            "type": "button",
            "action_id": "undo",
            "value": "1",
            "text": {"type": "plain_text", "text": "Undo"},
        }
    ],
}


@app.event("app_mention")
def mentioned(event, client):
    root = event.get("thread_ts", event["ts"])
    sent = client.chat_postMessage(channel=event["channel"], thread_ts=root, text="one moment")
    client.chat_update(channel=event["channel"], ts=sent["ts"], text="done &lt;!channel&gt;")


@app.event("message")
def said(event, client):
    if event.get("bot_id") or event.get("subtype"):
        return
    if event["text"] == "long":
        client.files_upload_v2(
            channel=event["channel"], thread_ts=event["ts"], content="all of it", filename="long.md"
        )
    if event["text"] == "who":
        seen = client.conversations_replies(channel=event["channel"], ts=event["ts"])["messages"]
        name = client.users_info(user=event["user"])["user"]["name"]
        client.conversations_info(channel=event["channel"])
        client.reactions_add(channel=event["channel"], timestamp=event["ts"], name="eyes")
        client.chat_postMessage(channel=event["channel"], text=f"{name} {len(seen)}")


@app.command("/usage")
def usage(ack, respond, command):
    ack()
    respond(text="4 of 5 left for " + (command["text"] or "all"))


@app.command("/model")
def model(ack, client, command):
    ack()
    client.chat_postMessage(channel=command["channel_id"], text="changed", blocks=[BUTTON])


@app.action("undo")
def undo(ack, respond):
    ack()
    respond(text="undone", blocks=[], replace_original=True)


handler = SocketModeHandler(app, app_token)
handler.connect()
print("ready", flush=True)
sys.stdin.read()
handler.close()
