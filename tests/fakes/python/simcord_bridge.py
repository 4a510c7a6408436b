"""simcord 3.2.1 (MIT), a Discord written by others, behind real sockets: for our adapter, not for the fake.

usage: simcord_bridge.py (prints one JSON line with base, token and ids; then obeys JSON lines on standard input)

  {"say": "text"}                     anna writes in #general
  {"slash": "usage", "options": {}}   anna uses a command
  {"click": "custom_id"}              anna presses a button of the bot's newest message
  {"last": true}                      answers what became of the last command or click: responded, ephemeral, content.
                                      It comes as soon as the gateway told it: ask again until it is responded
  {"seen": true}                      answers the messages of #general as anna sees them: [{"author", "content"}]
Each line is answered by one line: {"ok": …} or {"error": "…"}. Ends with its input.

Shims, because real clients talk to it: nulls are stripped from bodies, commands get a `version`. It has no rate limits,
no nonces, no 2000-character limit and no gateway faults.
"""

import asyncio
import json
import sys

import discord
import simcord
import simcord.http.router as router
from aiohttp import WSMsgType, web
from simcord.backend import serializers
from simcord.backend.errors import BackendError
from simcord.results import ResponseMessage

TOKEN = "MTA.fake.token"


def without_nulls(node):
    if isinstance(node, dict):
        return {key: without_nulls(value) for key, value in node.items() if value is not None}
    return [without_nulls(item) for item in node] if isinstance(node, list) else node


def with_version(answer):
    if isinstance(answer, list):
        return [with_version(one) for one in answer]
    if isinstance(answer, dict) and "application_id" in answer and "name" in answer and "author" not in answer:
        return {"version": "1", **answer}
    return answer


class Bridge:
    def __init__(self, env):
        self.env, self.backend, self.sockets, self.sequence, self.last = env, env.backend, [], 0, None
        self.guild = env.create_guild()
        self.general = self.guild.create_text_channel("general")
        self.anna = self.guild.add_member(env.create_user("anna"))
        self.backend.subscribers.append(self.publish)
        self.base = ""

    def publish(self, event, payload):
        for socket in list(self.sockets):
            asyncio.ensure_future(self.send(socket, event, payload))

    async def send(self, socket, event, payload):
        self.sequence += 1
        await socket.send_json({"op": 0, "s": self.sequence, "t": event, "d": payload})

    async def rest(self, request):
        path = request.path.removeprefix("/api/v10")
        if path.startswith("/gateway"):
            limit = {"total": 1000, "remaining": 999, "reset_after": 0, "max_concurrency": 1}
            url = self.base.replace("http", "ws") + "/gw"
            return web.json_response({"url": url, "shards": 1, "session_start_limit": limit})
        body = await request.text()
        body = without_nulls(json.loads(body)) if body else None
        try:
            answer = router.dispatch(self.backend, request.method, path, json=body, params=dict(request.query))
        except BackendError as refused:
            return web.json_response(refused.to_json(), status=refused.status)
        if answer is None or path.endswith("/callback"):
            return web.Response(status=204)
        return web.json_response(with_version(answer))

    async def gateway(self, request):
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"op": 10, "d": {"heartbeat_interval": 41250}})
        async for frame in socket:
            if frame.type != WSMsgType.TEXT:
                break
            data = json.loads(frame.data)
            if data["op"] == 1:
                await socket.send_json({"op": 11})
            elif data["op"] == 2:
                await self.ready(socket)
        if socket in self.sockets:
            self.sockets.remove(socket)
        return socket

    async def ready(self, socket):
        user = dict(serializers.user_payload(self.backend.bot_user))
        user |= {"bot": True, "mfa_enabled": False, "verified": True, "email": None}
        guild = serializers.guild_create_payload(self.backend, self.backend.get_guild(self.guild.id))
        ready = {
            "v": 10, "session_id": "s", "resume_gateway_url": self.base.replace("http", "ws") + "/gw",
            "shard": [0, 1], "guilds": [{"id": str(self.guild.id), "unavailable": True}], "user": user,
            "application": {"id": str(self.backend.application_id), "flags": 0},
        }
        await self.send(socket, "READY", ready)
        await self.send(socket, "GUILD_CREATE", guild)
        self.sockets.append(socket)

    async def obey(self, order):
        if "say" in order:
            await self.anna.send(self.general, order["say"])
        elif "slash" in order:
            self.last = await self.anna.slash(self.general, order["slash"], **order.get("options", {}))
        elif "click" in order:
            self.last = await self.anna.click(self.newest_of_bot(), custom_id=order["click"])
        elif "last" in order:
            interaction, response = self.last._interaction, self.last.response
            content = response.content if response else None
            return {"responded": interaction.responded, "ephemeral": interaction.ephemeral, "content": content}
        elif "seen" in order:
            shown = router.dispatch(self.backend, "GET", f"/channels/{self.general.id}/messages")
            return [{"author": one["author"]["username"], "content": one["content"]} for one in reversed(shown)]
        else:
            raise ValueError(f"unknown order {order}")
        return True

    def newest_of_bot(self):
        shown = router.dispatch(self.backend, "GET", f"/channels/{self.general.id}/messages")
        bot = str(self.backend.bot_user.id)
        newest = next(one for one in shown if one["author"]["id"] == bot)["id"]
        return ResponseMessage(self.env, self.backend.get_message(self.general.id, int(newest)))


async def main():
    env = simcord.Env(discord.Client(intents=discord.Intents.all()))
    await env.start()
    bridge = Bridge(env)
    app = web.Application()
    app.router.add_get("/gw", bridge.gateway)
    app.router.add_get("/gw/", bridge.gateway)
    app.router.add_route("*", "/{rest:.*}", bridge.rest)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    bridge.base = "http://127.0.0.1:%d" % site._server.sockets[0].getsockname()[1]
    ids = {"guild": bridge.guild.id, "channel": bridge.general.id, "anna": bridge.anna.id}
    ids |= {"bot": bridge.backend.bot_user.id, "application": bridge.backend.application_id}
    print(json.dumps({"base": bridge.base, "token": TOKEN} | {name: str(one) for name, one in ids.items()}), flush=True)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        try:
            answer = {"ok": await bridge.obey(json.loads(line))}
        except Exception as wrong:  # told to the test, which knows whether it is wrong
            answer = {"error": f"{type(wrong).__name__}: {wrong}"}
        print(json.dumps(answer), flush=True)
    await runner.cleanup()


asyncio.run(main())
