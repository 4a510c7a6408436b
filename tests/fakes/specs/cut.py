#!/usr/bin/env python3
"""Cuts Discord's OpenAPI file to the paths the fake serves, with every component reachable from them.

usage: cut.py FULL_OPENAPI_JSON > discord/openapi.json

The whole file is 1.2 MB; nothing in what is kept is changed.
"""

import json
import sys

APPLICATION = "/applications/{application_id}"
GUILD = APPLICATION + "/guilds/{guild_id}"
CHANNEL = "/channels/{channel_id}"
MESSAGE = CHANNEL + "/messages/{message_id}"
WEBHOOK = "/webhooks/{webhook_id}/{webhook_token}"

KEPT = [
    "/gateway",
    "/gateway/bot",
    "/users/@me",
    "/users/@me/guilds",
    "/users/@me/channels",
    "/applications/@me",
    "/oauth2/applications/@me",
    APPLICATION + "/commands",
    APPLICATION + "/commands/{command_id}",
    GUILD + "/commands",
    GUILD + "/commands/{command_id}",
    "/guilds/{guild_id}",
    "/guilds/{guild_id}/channels",
    "/guilds/{guild_id}/roles",
    "/guilds/{guild_id}/members/{user_id}",
    "/guilds/{guild_id}/threads/active",
    CHANNEL,
    CHANNEL + "/typing",
    CHANNEL + "/threads",
    CHANNEL + "/messages",
    MESSAGE,
    MESSAGE + "/threads",
    MESSAGE + "/reactions/{emoji_name}/@me",
    "/interactions/{interaction_id}/{interaction_token}/callback",
    WEBHOOK,
    WEBHOOK + "/messages/@original",
    WEBHOOK + "/messages/{message_id}",
]


def reachable(start, whole):
    """References reachable from `start`, itself left out."""
    found, todo = set(), [start]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, dict):
            todo.extend(node.values())
            reference = node.get("$ref")
            if isinstance(reference, str) and reference not in found:
                found.add(reference)
                target = whole
                for part in reference.removeprefix("#/").split("/"):
                    target = target[part]
                todo.append(target)
    return found


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        whole = json.load(file)
    missing = [path for path in KEPT if path not in whole["paths"]]
    if missing:
        sys.exit(f"error: the file has no {', '.join(missing)}; correct KEPT in this script")
    paths = {path: whole["paths"][path] for path in KEPT}
    components = {}
    for reference in sorted(reachable(paths, whole)):
        _, _, kind, name = reference.split("/")
        components.setdefault(kind, {})[name] = whole["components"][kind][name]
    json.dump({**whole, "paths": paths, "components": components}, sys.stdout, indent=1, ensure_ascii=False)
    print()


main()
