"""Which team owns a topic."""

import json

import channels
import pytest
from commands import one_line
from parties import assert_accepted, assert_refused
from provider import Provider, away_device
from service import TEAM, TOPIC, eventually, herald

OTHERS = "OTHERTEAM1"
MAIL = "com.example.mail"


def apps(service, *options):
    return json.loads(herald("app", "list", "--data", service.data, "--json", *options).stdout)


def owners(service):
    return {app["topic"]: app.get("owner") for app in apps(service)}


@pytest.fixture
def service(fresh):
    return fresh().start()


def test_the_list_has_topics_that_no_app_has_yet(service):
    herald("app", "claim", f"{TOPIC}.voip", "--team", OTHERS, "--data", service.data)
    service.provider_key(MAIL)
    chat, mail = apps(service)
    assert (chat["topic"], chat["owner"], chat["owner_origin"]) == (TOPIC, OTHERS, "operator")
    assert (mail["topic"], mail["owner"], mail["owner_origin"]) == (MAIL, TEAM, "credential")
    assert not {"environment", "created"} & {*chat, *mail} and not chat["unused"]
    assert [line.split()[1:6] for line in herald("app", "list", "--data", service.data).stdout.splitlines()[1:]] == [
        ["-", "0", "0", OTHERS, chat["owner_since"]], ["-", "0", "0", TEAM, mail["owner_since"]],
    ]
    assert apps(service, "--unused") == []
    away_device(service)
    app, last = apps(service)
    assert last == mail
    assert (app["environment"], app["devices"], app["owner"]) == ("production", 1, OTHERS)
    assert app["owner_since"] == chat["owner_since"]


def test_the_team_of_the_first_accepted_push_owns_the_topic(service):
    token = away_device(service).token
    keys = service.provider_key(), service.provider_key(team=OTHERS)
    with Provider(service, key=keys[1]) as others:
        assert_refused(others.push("0f" * 32), 400, "BadDeviceToken")
        assert owners(service) == {TOPIC: None}
        with Provider(service, key=keys[0]) as first:
            assert_accepted(first.push(token))
            assert owners(service) == {TOPIC: TEAM}
            assert_refused(others.push(token), 400, "TopicDisallowed")
            assert_accepted(first.push(token))
    eventually(lambda: any("topic claimed" in line and TEAM in line for line in service.lines), what="the log")
    # It outlives the service and the credential.
    service.kill()
    service.start()
    herald("provider", "revoke", keys[0][1], "--data", service.data)
    with Provider(service, key=keys[1]) as others:
        assert_refused(others.push(token), 400, "TopicDisallowed")


def test_before_a_device_has_an_app_its_channels_keep_nobody_out(service):
    with Provider(service, key=service.provider_key()) as first, \
            Provider(service, key=service.provider_key(team=OTHERS)) as others:
        channel, second = channels.create(first, bundle=MAIL), channels.create(others, bundle=MAIL)
        assert owners(service) == {MAIL: None}
        channels.publish(first, channel, bundle=MAIL)
        channels.publish(others, second, bundle=MAIL)
        assert sorted(channels.listing(first, bundle=MAIL)) == sorted((channel, second))
        assert channels.listing(others, bundle=MAIL) == []
        assert owners(service) == {MAIL: None}
        # The first accepted push decides, whoever made the first channel.
        token = away_device(service, MAIL).token
        channels.assert_refused(channels.send(others, second, bundle=MAIL), 400, "ChannelNotRegistered")
        assert_accepted(others.push(token, topic=MAIL))
        assert owners(service) == {MAIL: OTHERS}
        channels.publish(others, second, bundle=MAIL)
        channels.assert_refused(channels.send(first, channel, bundle=MAIL), 403, "TopicMismatch")


def test_the_team_of_the_first_channel_claims_the_topic_by_a_broadcast(service):
    with Provider(service, key=service.provider_key()) as first:
        channel = channels.create(first, bundle=MAIL)
        away_device(service, MAIL)
        service.kill()
        service.start()
    with Provider(service, key=service.provider_key()) as first:
        channels.publish(first, channel, bundle=MAIL)
        assert owners(service) == {MAIL: TEAM}


def test_the_team_that_makes_a_channel_keeps_other_teams_out(service):
    away_device(service, MAIL)
    with Provider(service, key=service.provider_key()) as first:
        with Provider(service, key=service.provider_key(team=OTHERS)) as others:
            assert channels.listing(others, bundle=MAIL) == []
            channel = channels.create(first, bundle=MAIL)
            assert owners(service) == {MAIL: TEAM}
            for answer in (
                channels.call(others, "GET", f"/1/apps/{MAIL}/all-channels"), channels.read(others, channel, bundle=MAIL),
                channels.delete(others, channel, bundle=MAIL), channels.send(others, channel, bundle=MAIL),
                channels.call(others, "POST", f"/1/apps/{MAIL}/channels", channels.ATTRIBUTES),
            ):
                channels.assert_refused(answer, 403, "TopicMismatch")
        assert channels.listing(first, bundle=MAIL) == [channel]
        channels.publish(first, channel, bundle=MAIL)


def test_the_operator_says_which_team_owns_a_topic(service):
    data = ("--data", service.data)
    token = away_device(service).token
    claim = ("app", "claim", f"{TOPIC}.voip", *data, "--team")
    with Provider(service, key=service.provider_key()) as first, \
            Provider(service, key=service.provider_key(team=OTHERS)) as others:
        assert herald(*claim, TEAM).stdout == f"{TOPIC} belongs to team {TEAM}\n"
        assert_refused(others.push(token), 400, "TopicDisallowed")
        assert f"{TOPIC} belongs to team {TEAM}: " in one_line(herald(*claim, OTHERS, check=False))
        (moved,) = json.loads(herald(*claim, OTHERS, "--force", "--json").stdout)
        assert (moved["topic"], moved["team"], moved["origin"]) == (TOPIC, OTHERS, "operator")
        assert_accepted(others.push(token))
        assert_refused(first.push(token), 400, "TopicDisallowed")
        assert herald("app", "release", TOPIC, *data).stdout == f"{TOPIC} belongs to no team\n"
        assert_accepted(first.push(token))
        assert owners(service) == {TOPIC: TEAM}
    assert "no team owns" in one_line(herald("app", "release", MAIL, *data, check=False))
