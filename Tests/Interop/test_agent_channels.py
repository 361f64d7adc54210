"""An agent's subscriptions to channels: made on the socket and on the command line, kept over restarts."""

import json

import pytest

from agents import Agent, Local, make_bundle
from channels import LIVE, create, delete, publish
from provider import Provider
from service import TOPIC, eventually

OTHER = "com.example.other"


@pytest.fixture
def agent(shared, tmp_path):
    identity, _ = shared.device("agent")
    agent = Agent(shared, tmp_path / "device", identity)
    yield agent
    agent.close()


@pytest.fixture
def sender(shared, parties):
    with Provider(shared, parties.certificate) as sender:
        yield sender


def channels(agent, *options):
    return json.loads(agent.command("channel", "list", "--json", *options).stdout)


def live(score):
    return {"aps": {**LIVE["aps"], "content-state": {"score": score}}}


def test_broadcasts_are_shown_once_also_after_a_restart(agent, sender):
    channel = create(sender)
    try:
        agent.start("--app", TOPIC, "--allow", "alert").next("connected")
        agent.stop()
        # The agent tells the service when it starts.
        agent.command("channel", "subscribe", "--app", TOPIC, channel)
        assert channels(agent)[TOPIC] == [{"id": channel, "refused": None, "newest": None}]
        agent.start().next("channel", topic=TOPIC, channel=channel)
        first = publish(sender, channel, live(1), expiration=2_000_000_000)
        shown = agent.next("notification", channel=channel)
        assert (shown["apns_id"], shown["payload"]) == (first, live(1))
        assert shown["presentation"]["because"] == ["there is no Live Activity to change"]
        record = agent.shown(first)
        assert (record["channel"], record["push_type"]) == (channel, "liveactivity")
        for end in (agent.stop, agent.kill):
            end()
            agent.start()
            # The channel keeps it, and the service sends it again: it is not shown again.
            assert agent.next("notification", channel=channel)["shown_before"]
        assert channels(agent, "--app", TOPIC) == {TOPIC: [{"id": channel, "refused": None, "newest": first}]}
        assert json.loads(agent.command("channel", "show", "--app", TOPIC, channel, "--json").stdout) == agent.shown(first)
        agent.command("channel", "unsubscribe", "--app", TOPIC, channel)
        assert channels(agent) == {TOPIC: []}
        agent.stop()
        agent.start().next("token")
        assert not [line for line in agent.passed if line["event"] == "channel"]
    finally:
        delete(sender, channel)


def test_an_app_subscribes_and_gets_the_broadcasts_itself(agent, sender):
    channel = create(sender)
    agent.start("--app", TOPIC, "--allow", "alert").token(TOPIC)
    local = Local(agent.folder)
    try:
        assert local.ask("register", topic=TOPIC)["ok"]
        assert local.ask("subscribe", topic=TOPIC, channel=channel)["ok"]
        assert local.event("channel") == {"event": "channel", "topic": TOPIC, "channel": channel, "refused": None}
        unique = publish(sender, channel, live(2))
        event = local.event("notification")
        assert (event["why"], event["channel"], event["apns_id"], event["payload"]) == ("broadcast", channel, unique, live(2))
        assert local.ask("unsubscribe", topic=TOPIC, channel=channel)["ok"]
        assert "is not subscribed" in local.ask("unsubscribe", topic=TOPIC, channel=channel)["error"]
        assert "24 characters of base64" in local.ask("subscribe", topic=TOPIC, channel="abc")["error"]
    finally:
        local.close()
        delete(sender, channel)


def test_a_live_activity_follows_the_channel_that_its_start_names(agent, parties, sender, tmp_path):
    channel, topic = create(sender), f"{TOPIC}.push-type.liveactivity"
    bundle = make_bundle(tmp_path / "Game.app", TOPIC, HeraldTopics=[topic])
    token = agent.start("--app", bundle, "--allow", "alert").token(topic)
    start = {"event": "start", "attributes-type": "Game", "attributes": {}, "content-state": {"score": 0}, "timestamp": 1}
    try:
        # Live Activities need a provider token.
        with parties.provider("key") as provider:
            payload = {"aps": {**start, "input-push-channel": channel}}
            assert provider.push(token, payload, topic=topic, push_type="liveactivity").status == 200
        agent.next("channel", topic=TOPIC, channel=channel)
        publish(sender, channel, live(3))
        agent.next("notification", channel=channel)
        assert agent.show()["activities"][0]["content"] == {"score": 3}
    finally:
        delete(sender, channel)


def test_refused_channels_are_reported_in_words(agent, sender):
    gone, foreign = create(sender), create(sender, bundle=TOPIC)
    delete(sender, gone)
    try:
        agent.start("--app", TOPIC, "--app", OTHER, "--allow", "alert").token(TOPIC)
        for topic, channel in ((TOPIC, gone), (OTHER, foreign)):
            agent.command("channel", "subscribe", "--app", topic, channel)
            refused = agent.next("channel", topic=topic, channel=channel)["refused"]
            assert "the app has no such channel in production" in refused
            assert "it was deleted, or is of another app or of the other environment" in refused
        eventually(lambda: channels(agent)[OTHER][0]["refused"], what="the refusal")
        assert f"channel {gone}, refused: " in agent.command("channel", "list").stdout
        failed = agent.command("channel", "show", "--app", TOPIC, gone, check=False)
        assert failed.returncode == 1 and "no broadcast of this channel has come" in failed.stderr
    finally:
        delete(sender, foreign)
