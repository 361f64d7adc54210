import Foundation
import Testing

@testable import HeraldPhone

/// Programs of apps: what they get, what is read of them, and how they are ended.
@Suite(.timeLimit(.minutes(10))) struct ProgramTests {
    private func run(
        _ script: String,
        input: [UInt8] = [],
        environment: [String: String] = [:],
        limits: ProgramLimits = .patient
    ) async throws -> Program.Outcome {
        let folder = try TemporaryFolder()
        let path = folder.path + "/program"
        try Data("#!/bin/sh\n\(script)\n".utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        let call = Program.Call(path: path, folder: folder.path, environment: environment, input: input)
        return await Program(call, limits: limits).run()
    }

    @Test func `gets its input, its folder, its environment and nothing else`() async throws {
        setenv("HERALD_TEST_SECRET", "x", 1)
        let leaked = open("/dev/null", O_RDONLY)
        defer { close(leaked) }
        let outcome = try await run(
            #"cat; basename "$PWD" | cut -c1-6; env | sort | grep -v '^PWD=\|^_=\|^SHLVL='; [ -e /proc/self/fd/\#(leaked) ] && echo leaked; ps -o pid=,sid= -p $$ | awk '{print $1 == $2}'"#,
            input: Array("in\n".utf8),
            environment: ["A": "1"]
        )
        #expect(outcome.end == .exited(0))
        #expect(String(decoding: outcome.output, as: UTF8.self) == "in\nherald\nA=1\n1\n")
    }

    @Test func `the last line says how the run in the background ended`() async throws {
        let newData = try await run("echo working; echo 'new data'")
        #expect(newData.background == .newData && newData.words == nil)
        #expect(try await run("true").background == .noData)
        #expect(try await run("echo whatever").background == .failed)
        let failed = try await run("echo 'new data'; echo 'no such host' >&2; exit 3")
        #expect(failed.background == .failed && failed.words == "failed with exit code 3: no such host")
        #expect(try await run("kill -SEGV $$").end == .signalled(SIGSEGV))
    }

    @Test func `one that takes too long is ended and one that does not listen is killed`() async throws {
        var limits = ProgramLimits()
        limits.time = .milliseconds(300)
        limits.grace = .milliseconds(300)
        let ended = try await run("sleep 1000", limits: limits)
        #expect(ended.end == .ended)
        #expect(ended.background == .timedOut)
        let killed = try await run("trap '' TERM; while :; do sleep 1000; done", limits: limits)
        #expect(killed.end == .ended)
        #expect(killed.words == "took too long and was killed")
    }

    @Test func `one whose app the user ends did not take too long`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/program"
        try Data("#!/bin/sh\nexec sleep 1000\n".utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: path)
        let program = Program(
            Program.Call(path: path, folder: folder.path, environment: [:], input: []),
            limits: .patient
        )
        async let outcome = program.run()
        program.end()
        let ended = await outcome
        #expect(ended.end == .cancelled && ended.words == nil && ended.background == .failed)
    }

    @Test func `what it started ends with it`() async throws {
        // The pipe stays open in the child that sleeps; the program's end is its own.
        let outcome = try await run("sleep 1000 & echo $!")
        #expect(outcome.end == .exited(0))
        let child = try #require(
            pid_t(String(decoding: outcome.output, as: UTF8.self).trimmingCharacters(in: .newlines))
        )
        // The kernel ends a killed process a moment later.
        let end = ContinuousClock.now + .seconds(60)
        while kill(child, 0) == 0, !isZombie(child), ContinuousClock.now < end { await Task.yield() }
        #expect(kill(child, 0) != 0 || isZombie(child))
    }

    private func isZombie(_ process: pid_t) -> Bool {
        let status = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        return status.isEmpty || status.contains(") Z")
    }

    @Test func `what it says is read up to a limit`() async throws {
        var limits = ProgramLimits.patient
        limits.outputBytes = 1000
        let outcome = try await run("yes | head -c 200000", limits: limits)
        #expect(outcome.isTooLong && outcome.output.count == 1000 && outcome.background == .failed)
    }

    @Test func `one that does not read does no harm`() async throws {
        let outcome = try await run("exec <&-; echo 'no data'", input: Array(repeating: 120, count: 1 << 20))
        #expect(outcome.words == nil)
        #expect(outcome.background == .noData)
    }

    @Test func `one that cannot be started is told`() async throws {
        let call = Program.Call(path: "/nowhere", folder: "/", environment: [:], input: [])
        let outcome = await Program(call, limits: ProgramLimits()).run()
        #expect(outcome.words == "cannot be started: No such file or directory")
    }

    @Test func `a service program must return an object that fits`() async throws {
        #expect(try await run(#"echo '{"aps":{}}'"#).payload == Array("{\"aps\":{}}\n".utf8))
        #expect(try await run("echo '[]'").payload == nil)
        #expect(try await run("true").payload == nil)
        #expect(try await run(#"echo '{"aps":{}}'; exit 1"#).payload == nil)
        #expect(try await run(#"printf '{"a":"%05200d"}' 1"#).payload == nil)
    }
}

extension ProgramLimits {
    /// On a busy machine everything takes longer.
    static var patient: ProgramLimits {
        var limits = ProgramLimits()
        limits.time = .seconds(240)
        return limits
    }
}

/// A folder that goes with the test.
final class TemporaryFolder: Sendable {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "/herald-\(UInt64.random(in: 0 ... .max))"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }
}
