import ArgumentParser
import Foundation
import HeraldActivation
import HeraldCourier
import HeraldGateway
import HeraldListener
import HeraldMailbox
import HeraldModel
import HeraldTestSupport
import Logging
import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct ServerConfigurationTests {
    private func configuration(
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        file: String? = nil
    ) throws -> ServerConfiguration {
        var arguments = arguments
        let folder = try TemporaryFolder()
        if let file { arguments += ["--config", try folder.write(file, to: "herald.yaml")] }
        return try Serve.parse(arguments).configuration(environment: environment)
    }

    private func complaint(
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        file: String? = nil
    ) throws -> String {
        let error = try #require(throws: CommandError.self) {
            try configuration(arguments, environment: environment, file: file)
        }
        #expect(error.code == .configuration)
        #expect(!error.message.contains("\n"))
        return error.message
    }

    @Test func `without settings every value is the default`() throws {
        #expect(try configuration().changes(to: ServerConfiguration()).isEmpty)
    }

    @Test func `the listeners, the environment and the time to stop are the same in every part`() throws {
        for read in [
            ServerConfiguration(),
            try configuration(["--host", "::1", "--environment", "sandbox", "--grace-period", "1m"]),
        ] {
            let listeners = [read.gateway.listener, read.binary.listener, read.feedback.listener, read.deviceListener]
            #expect(listeners.allSatisfy { $0.host == read.host } && read.activation.listener.host == read.host)
            let environments = [read.binary.environment, read.feedback.environment, read.courier.environment]
            #expect(environments.allSatisfy { $0 == read.environment })
            let shutdown = read.gracePeriod - .seconds(2)
            #expect(read.gateway.timeouts.shutdown == shutdown && read.binary.shutdown == shutdown)
            #expect(read.courier.longestSession == read.postOffice.longestStorage)
        }
    }

    @Test func `the file sets every key`() throws {
        let read = try configuration(
            file: """
                data: /srv/herald
                hostname: [push.example.com, "10.0.0.1"]
                host: 0.0.0.0
                console-host: "::1"
                console-tls: on
                environment: sandbox
                api-port: 1
                binary-port: 2
                feedback-port: 3
                device-port: 4
                activation-port: 5
                console-port: 0
                demo: true
                storage-days: 3
                journal-days: 14
                journal-size: 1
                unique-id: always
                accept-non-json: yes
                broadcast-apps: [com.example.chat, com.example.mail]
                channel-limit: 12
                keep-alive: 5m
                require-token: 20s
                device-topics: known
                grace-period: 3s
                provider-idle: 90s
                drill: [drop --for 10m]
                payload-drills: true
                payload-drills-in-public: true
                catch: [com.example.chat]
                catch-in-public: true
                log-format: json
                log-level: debug
                clock: +1h
                """
        )
        var expected = ServerConfiguration()
        expected.data = "/srv/herald"
        expected.hostnames = ["push.example.com", "10.0.0.1"]
        (expected.host, expected.consoleHost) = ("0.0.0.0", "::1")
        expected.consoleTLS = .on
        expected.environment = .sandbox
        (expected.gateway.listener.port, expected.binary.listener.port, expected.feedback.listener.port) = (1, 2, 3)
        (expected.deviceListener.port, expected.activation.listener.port, expected.consolePort) = (4, 5, 0)
        expected.demo = true
        expected.longestStorage = .seconds(3 * 86_400)
        expected.postOffice.journalAge = .seconds(14 * 86_400)
        expected.postOffice.journalBytes = 1 << 20
        expected.uniqueID = .always
        expected.gateway.rules.takesUnreadablePayloads = true
        let apps = ["com.example.chat", "com.example.mail"].compactMap { Topic($0) }
        expected.gateway.rules.broadcastApps = .only(Set(apps))
        expected.channelsPerApp = 12
        expected.courier.longestKeepAlive = .seconds(300)
        (expected.courier.tokenGrace, expected.courier.deviceTopics) = (.seconds(20), .known)
        expected.gracePeriod = .seconds(3)
        expected.providerIdle = .seconds(90)
        expected.drills = [try DrillOptions.configured("drop --for 10m")]
        (expected.allowsPayloadDrills, expected.allowsPayloadDrillsInPublic) = (true, true)
        (expected.catchScope, expected.catchesInPublic) = (Topic("com.example.chat").map { .topics([$0]) }, true)
        expected.logFormat = .json
        expected.logLevel = .debug
        expected.clock = .shifted(by: .seconds(3600))
        #expect(read.changes(to: expected).map(\.key.name).isEmpty)
    }

    @Test(arguments: ServerSettings.rows.map(\.key))
    func `every setting is an option`(key: SettingKey) throws {
        let value = key.example.trimmingCharacters(in: CharacterSet(charactersIn: "[]"))
        let arguments = ["--\(key.name)"] + (key.shape == .flag ? [] : [value])
        #expect(try Serve.parse(arguments).typed.keys.elementsEqual([key]))
    }

    @Test func `the environment wins over the file`() throws {
        let read = try configuration(
            environment: ["HERALD_API_PORT": "4000"],
            file: "api-port: 3000\nbinary-port: 3001"
        )
        #expect(read.gateway.listener.port == 4000)
        #expect(read.binary.listener.port == 3001)
    }

    @Test func `the command line wins over the environment`() throws {
        let read = try configuration(
            ["--api-port", "5000", "--no-demo"],
            environment: ["HERALD_API_PORT": "4000", "HERALD_DEMO": "true"]
        )
        #expect(read.gateway.listener.port == 5000)
        #expect(!read.demo)
    }

    @Test func `a list in the environment is separated by commas`() throws {
        let read = try configuration(environment: ["HERALD_HOSTNAME": "a.example, b.example"])
        #expect(read.hostnames == ["a.example", "b.example"])
    }

    @Test(arguments: [("all", BroadcastApps.all), ("none", .only([]))])
    func `all apps, or none, may have channels`(word: String, apps: BroadcastApps) throws {
        #expect(try configuration(file: "broadcast-apps: [\(word)]").gateway.rules.broadcastApps == apps)
        #expect(try configuration(["--broadcast-apps", word]).gateway.rules.broadcastApps == apps)
        #expect(try configuration(environment: ["HERALD_BROADCAST_APPS": word]).gateway.rules.broadcastApps == apps)
    }

    @Test(arguments: [("all", CatchScope.all), ("off", .off)])
    func `everything is caught, or nothing`(word: String, scope: CatchScope) throws {
        #expect(try configuration(file: "catch: [\(word)]").catches == scope)
        #expect(try configuration(["--catch", word]).catches == scope)
    }

    @Test func `a demo catches everything, unless everybody can reach it`() throws {
        #expect(try configuration(["--demo"]).catches == .all)
        #expect(try configuration(["--demo", "--catch", "off"]).catches == .off)
        #expect(try configuration(["--demo", "--host", "0.0.0.0"]).catches == .off)
        #expect(try configuration().catches == .off)
    }

    @Test func `nothing is caught where everybody can reach the service`() throws {
        #expect(throws: CommandError.self) { try configuration(["--catch", "all", "--host", "0.0.0.0"]) }
        let both = try configuration(["--catch", "all", "--host", "0.0.0.0", "--catch-in-public"])
        #expect(both.catches == .all)
    }

    @Test func `the environment may name the file`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("api-port: 7", to: "other.yaml")
        #expect(try configuration(environment: ["HERALD_CONFIG": path]).gateway.listener.port == 7)
    }

    @Test func `the file of the clients holds every key of theirs, and none of the service's`() throws {
        let text = try Manual.text("clients.yaml")
        #expect(try configuration(file: text).changes(to: ServerConfiguration()).isEmpty)
        for key in SettingKey.all {
            #expect(text.contains("\n\(key.name): ") == SettingKey.ofClients.contains(key), "\(key.name)")
        }
    }

    @Test(arguments: ["", "# nothing yet\n", "---\n"])
    func `an empty file is a configuration`(text: String) throws {
        #expect(try configuration(file: text).changes(to: ServerConfiguration()).isEmpty)
    }

    @Test func `an unknown key is refused with its line and the likely one`() throws {
        let message = try complaint(file: "# ports\napi-prot: 2197\n")
        #expect(message.contains("herald.yaml:2: unknown key `api-prot`: did you mean `api-port`?"))
    }

    @Test func `an address may have the brackets of a URL, and no port`() throws {
        let read = try configuration(["--host", "[::1]", "--console-host", "[::]", "--hostname", "[fd00::1]"])
        #expect((read.host, read.consoleHost) == ("::1", "::") && read.hostnames == ["fd00::1"])
        for wrong in ["[::1]:2197", "127.0.0.1:2197", "localhost:1", "[localhost]", "::1]", "a b", "a/b"] {
            #expect(throws: CommandError.self, "\(wrong)") { try configuration(["--host", wrong]) }
        }
    }

    @Test func `an unknown key that resembles nothing is refused`() throws {
        #expect(try complaint(file: "colour: blue").contains("unknown key `colour`: remove it"))
    }

    @Test func `the file of a relay is not a service's`() throws {
        let message = try complaint(file: "host: ::1\ndatabase: sqlite:///q.db\n")
        #expect(message.contains("herald.yaml:2: unknown key `database`: it is for a relay's file"))
    }

    @Test(arguments: [
        (
            "api-port: often",
            "herald.yaml:1: `api-port` must be a whole number, without a unit: write for example `api-port: 2197`"
        ),
        ("api-port: [1]", "must be a whole number"),
        ("demo: perhaps", "must be true or false"),
        ("hostname: push.example.com", "must be a list of texts: write for example `hostname: [push.example.com]`"),
        ("host: {a: b}", "must be a text"),
        ("- api-port", "does not hold keys and values"),
        ("just words", "does not hold keys and values"),
        (
            "host: ::1\napi-port: [1",
            "herald.yaml:3: this is not YAML (did not find expected ',' or ']'): fix the file"
        ),
        ("\tapi-port: 1", "herald.yaml:1: this is not YAML (found character that cannot start any token)"),
        ("data: x\nhost: \u{1}", "herald.yaml:2: this is not YAML (control characters are not allowed)"),
        ("data: *x", "herald.yaml:1: this is not YAML (found undefined alias)"),
        (
            "api-port: 1\nhost: ::1\n# again\napi-port: 2\ndata: x",
            "herald.yaml:4: the key `api-port` appears twice: remove one of them"
        ),
        ("{api-port: 1,\n api-port: 2}", "herald.yaml:2: the key `api-port` appears twice"),
        ("apps:\n  - topic: a\n    service: b\n    topic: c", "herald.yaml:4: the key `topic` appears twice"),
        ("? [a, b]\n: 1", "unknown key"),
    ])
    func `a file of the wrong form is refused`(text: String, words: String) throws {
        #expect(try complaint(file: text).contains(words))
    }

    @Test(arguments: [
        (
            "HERALD_API_PORT", "often",
            "the environment variable HERALD_API_PORT must be a whole number, without a unit: write for example "
                + "HERALD_API_PORT=2197"
        ),
        ("HERALD_DEMO", "perhaps", "HERALD_DEMO"),
    ])
    func `a variable of the wrong type is refused`(name: String, value: String, words: String) throws {
        #expect(try complaint(environment: [name: value]).contains(words))
    }

    @Test func `an empty variable counts as not set, of whatever kind`() throws {
        let variables = Dictionary(uniqueKeysWithValues: SettingKey.all.map { ($0.variable, "") })
        let read = try configuration(environment: variables.merging(["HERALD_CONFIG": ""]) { $1 }, file: "api-port: 7")
        let plain = try configuration(file: "api-port: 7")
        #expect(read.gateway.listener.port == 7 && read.changes(to: plain).isEmpty)
    }

    @Test(arguments: [
        "cluster: [nats://ann:secret@a]", "cluster: ['nats://a?token=secret']",
        "cluster-monitor: ['http://a:1/?token=secret']",
        "cluster-monitor: ['http://ann:secret@a:1']", "cluster-monitor: ['http://a:1/#secret']",
        "host: 'http://a/?x=secret'",
        "hostname: ['https://ann:secret@a']",
    ])
    func `an address with a secret is refused unseen`(text: String) throws {
        let words = try complaint(file: text)
        #expect(!words.contains("secret"))
    }

    @Test(arguments: [
        ("api-port: 65536", "api-port cannot be \"65536\": write a number from 0 to 65535"),
        ("api-port: -1", "api-port"), ("environment: both", "write production or sandbox"),
        ("cluster: [http://a]", "nats://nats1"), ("node: a.b", "node cannot be"),
        ("clock: later", "clock cannot be"), ("storage-days: 0", "storage-days"), ("journal-size: 0", "journal-size"),
        ("keep-alive: 0s", "keep-alive"), ("keep-alive: 70000", "keep-alive"), ("grace-period: long", "grace-period"),
        ("require-token: 0s", "write never, or a time from 1s to 1h"), ("device-topics: all", "write any or known"),
        ("log-level: loud", "log-level"), ("log-format: xml", "write text or json or journald"),
        ("host: ''", "host cannot be"),
        ("hostname: ['a b']", "hostname cannot be"), ("hostname: ['https://a']", "hostname cannot be"),
        ("broadcast-apps: [all, com.example.a]", "broadcast-apps cannot be"), ("broadcast-apps: ['a b']", "or `none`"),
        ("channel-limit: -1", "channel-limit cannot be"), ("channel-limit: 1000001", "channel-limit"),
        ("unique-id: never", "write sandbox or always"), ("data: ''", "data cannot be"),
        ("background-burst: 0", "background-burst cannot be \"0\": write a number from 1 to 1000"),
        ("background-per-hour: 3601", "background-per-hour"), ("token-burst: 0", "token-burst"),
        ("token-rate: -1", "token-rate"), ("notification-memory: 0", "notification-memory"),
        ("newsstand-topic: ['a b']", "newsstand-topic cannot be \"a b\": write a topic"),
    ])
    func `an impossible value is refused`(text: String, words: String) throws {
        #expect(try complaint(file: text).contains(words))
    }

    @Test func `a file that cannot be read is refused`() throws {
        let message = try complaint(["--config", "/nowhere/herald.yaml"])
        #expect(message.contains("cannot read /nowhere/herald.yaml: No such file or directory"))
    }

    @Test func `a folder in place of the file is refused`() throws {
        #expect(try complaint(["--config", "/tmp"]).contains("cannot read /tmp"))
    }

    @Test func `what a file says is escaped before it is repeated`() throws {
        let message = try complaint(file: "\"a\\e[31m\": 1")
        #expect(message.contains("a\\u{1b}[31m"))
        #expect(!message.contains("\u{1b}"))
    }

    @Test func `misspelt variables are found`() {
        let unknown = Settings.unknownVariables(in: [
            "HERALD_API_PROT": "1", "HERALD_API_PORT": "1", "HERALD_CONFIG": "x", "HOME": "/",
        ])
        #expect(unknown == ["HERALD_API_PROT"])
    }
}
