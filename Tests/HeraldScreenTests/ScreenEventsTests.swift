import AsyncHTTPClient
import Foundation
import HeraldJSON
import HeraldPhone
import HeraldScreen
import HeraldWeb
import Logging
import NIOCore
import NIOHTTP1
import ServiceLifecycle
import Testing

@Suite struct ScreenEventsTests {
    @Test func `each change is an event`() async throws {
        let harness = ScreenHarness()
        try await harness.withScreen { base in
            let response = try await harness.send("GET", base + "/api/events")
            #expect(response.headers.first(name: "content-type") == "text/event-stream")
            var events = EventReader(response.body)
            #expect(try await events.next()?.locked == false)
            harness.device.change { $0.locked = true }
            #expect(try await events.next()?.locked == true)
            harness.device.change { $0.muted = true }
            #expect(try await events.next()?.muted == true)
        }
    }

    @Test func `an idle page gets a keep-alive comment`() async throws {
        var harness = ScreenHarness()
        harness.configuration.keepAlive = .milliseconds(10)
        try await harness.withScreen { [harness] base in
            var text = ""
            for try await part in try await harness.send("GET", base + "/api/events").body {
                text += String(buffer: part)
                if text.components(separatedBy: ": still here\n\n").count > 3 { break }
            }
            #expect(text.hasPrefix("event: device\ndata: {"))
        }
    }

    @Test func `too many pages are refused, and a closed one makes room`() async throws {
        var harness = ScreenHarness()
        harness.configuration.maximumViewers = 2
        harness.configuration.keepAlive = .milliseconds(10)
        try await harness.withScreen { [harness] base in
            do {
                var first = EventReader(try await harness.send("GET", base + "/api/events").body)
                var second = EventReader(try await harness.send("GET", base + "/api/events").body)
                _ = (try await first.next(), try await second.next())
                let refused = try await harness.ask("GET", base + "/api/events")
                #expect(refused.status == 503)
                #expect(refused.body.contains("2 pages already watch this device"))
            }
            // Both are gone with their connections, which the next comments find out.
            while true {
                let response = try await harness.send("GET", base + "/api/events")
                if response.status == .ok { break }
                _ = try await response.body.collect(upTo: 1 << 16)
                await Task.yield()
            }
        }
        #expect(harness.device.watchers == 0)
    }

    @Test func `an open page does not delay the shutdown`() async throws {
        let harness = ScreenHarness()
        let (opened, open) = AsyncStream.makeStream(of: Int.self)
        let group = ServiceGroup(
            services: [harness.service { open.yield($0) }],
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            tasks.addTask { try await group.run() }
            for await port in opened {
                let response = try await harness.send("GET", "http://127.0.0.1:\(port)/api/events")
                var events = EventReader(response.body)
                _ = try await events.next()
                await group.triggerGracefulShutdown()
                #expect(try await events.next() == nil)
                break
            }
            try await tasks.waitForAll()
        }
    }

    @Test func `the error of a used address says what to do`() async throws {
        let harness = ScreenHarness()
        try await harness.withScreen { base in
            let port = try #require(Int(base.split(separator: ":").last ?? ""))
            var second = harness
            second.configuration.port = port
            let taken = second.service { _ in }
            let error = await #expect(throws: WebListenerError.self) { try await taken.run() }
            #expect(error?.message.contains("127.0.0.1:\(port) is in use by another program") == true)
        }
    }
}

/// Reads snapshots out of server-sent events.
private struct EventReader {
    private var parts: HTTPClientResponse.Body.AsyncIterator
    private var text = ""

    init(_ body: HTTPClientResponse.Body) {
        parts = body.makeAsyncIterator()
    }

    /// The next snapshot, or nil at the end.
    mutating func next() async throws -> PhoneSnapshot? {
        while true {
            if let end = text.range(of: "\n\n") {
                let event = text[..<end.lowerBound]
                text = String(text[end.upperBound...])
                if let data = event.range(of: "data: ") {
                    return try JSON.decode(PhoneSnapshot.self, from: Array(event[data.upperBound...].utf8))
                }
            } else if let part = try await parts.next() {
                text += String(buffer: part)
            } else {
                return nil
            }
        }
    }
}
