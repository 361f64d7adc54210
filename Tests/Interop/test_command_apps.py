"""The names of apps, as the operator sees and forgets them."""

import json

import channels
from commands import one_line
from provider import Provider
from service import TEAM, eventually, herald

MAIL, NEWS = "com.example.mail", "com.example.news"


def listed(service, *options):
    apps = json.loads(herald("app", "list", "--data", service.data, "--json", *options).stdout)
    return {(app["topic"], app["environment"]): app for app in apps}


def test_names_are_listed_with_their_use_and_who_brought_them(fresh, enroll):
    service = fresh().start()
    phone, tablet = enroll(service, "phone"), enroll(service, "tablet")
    phone.connect().register(MAIL)
    link = tablet.connect()
    link.register(MAIL, f"{MAIL}.voip")
    link.unsubscribe(f"apps/{MAIL}.voip/#")
    with Provider(service, key=service.provider_key()) as provider:
        channels.create(provider, bundle=NEWS)
    apps = listed(service)
    found = [(app["topic"], app["devices"], app["channels"], app["unused"]) for app in apps.values()]
    assert found == [(MAIL, 2, 0, False), (f"{MAIL}.voip", 0, 0, True), (NEWS, 0, 1, False)]
    origins = [app.get("device") or app["team"] for app in apps.values()]
    assert origins == [phone.id, tablet.id, TEAM]
    assert [topic for topic, _ in listed(service, "--unused")] == [f"{MAIL}.voip"]
    table = herald("app", "list", "--data", service.data).stdout.splitlines()
    assert table[0].split()[:4] == ["TOPIC", "ENVIRONMENT", "DEVICES", "CHANNELS"]
    assert table[3].endswith(f"team {TEAM}") and len(table) == 4


def test_a_name_that_nothing_uses_is_forgotten_and_its_tokens_never_come_back(fresh, enroll):
    service = fresh().start()
    certificate = service.provider_certificate(MAIL, NEWS)
    link = enroll(service).connect()
    old, _ = link.register(MAIL, NEWS)
    data = ("--data", service.data)
    assert "is used in production: devices 1, channels 0" in one_line(herald("app", "forget", MAIL, *data, check=False))
    link.unsubscribe(f"apps/{MAIL}/#")
    with Provider(service, certificate) as provider:
        assert provider.push(old, topic=MAIL).status == 410
        assert herald("app", "forget", MAIL, *data).stdout == f"app {MAIL} is forgotten in production\n"
        assert "no app has the name" in one_line(herald("app", "forget", MAIL, *data, check=False))
        for _ in range(2):
            answer = provider.push(old, topic=MAIL)
            assert (answer.status, answer.reason) == (400, "BadDeviceToken")
            # The same name is another app now.
            new = link.register(MAIL)
            assert provider.push(new, topic=MAIL).status == 200
            link.notification(MAIL)
    assert listed(service).keys() == {(MAIL, "production"), (NEWS, "production")}
    service.kill()
    service.start()
    with Provider(service, certificate) as provider:
        assert provider.push(old, topic=MAIL).reason == "BadDeviceToken"
        assert provider.push(new, topic=MAIL).status == 200


def test_a_topic_may_be_forgotten_in_one_environment(fresh, enroll):
    service = fresh().start()
    for name in ("localhost", "sandbox.localhost"):
        link = enroll(service).connect(name=name)
        link.register(MAIL)
        link.unsubscribe(f"apps/{MAIL}/#")
    assert listed(service).keys() == {(MAIL, "production"), (MAIL, "sandbox")}
    herald("app", "forget", MAIL, "--environment", "sandbox", "--data", service.data)
    assert listed(service).keys() == {(MAIL, "production")}
    several = herald("app", "forget", MAIL, NEWS, "--data", service.data, check=False)
    assert several.returncode == 1 and several.stdout == f"app {MAIL} is forgotten in production\n"
    assert "no app has the name" in one_line(several)


def test_a_command_without_a_service_or_with_a_wrong_topic_says_so(tmp_path):
    herald("init", "--data", tmp_path / "data")
    assert "no service runs on" in one_line(herald("app", "list", "--data", tmp_path / "data", check=False))
    assert "is not a topic" in herald("app", "forget", "a..b", "--data", tmp_path / "data", check=False).stderr


def test_a_team_that_brings_too_many_names_gets_no_channel(fresh):
    service = fresh().start()
    bundles = [f"com.example.team{number}" for number in range(601)]
    # A key names at most 400 topics.
    with Provider(service, key=service.provider_key(*bundles[:300])) as provider:
        for bundle in bundles[:300]:
            channels.create(provider, bundle=bundle)
    with Provider(service, key=service.provider_key(*bundles[300:])) as provider:
        for bundle in bundles[300:600]:
            channels.create(provider, bundle=bundle)
        answer = channels.call(provider, "POST", f"/1/apps/{bundles[600]}/channels", channels.ATTRIBUTES)
        channels.assert_refused(answer, 400, "CannotCreateChannelConfig")
        # A second channel of an app brings no name.
        channels.create(provider, bundle=bundles[599])
    eventually(lambda: any("new app names are refused" in line and TEAM in line for line in service.lines), what="the log")
