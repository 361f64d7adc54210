import LoadKit
import NIOCore
import NIOPosix
import NIOSSL

/// Many connections to one server: all on one event loop, so that the load is one core.
final class Fleet: Sendable {
    /// A connection to be: who it is, and what it wants.
    struct Member: Sendable {
        fileprivate let identity: Int
        fileprivate var settings: LoadClient.Settings
        fileprivate let publishing: Publishing?
        fileprivate let context: NIOSSLContext

        func expecting(_ goal: LoadClient.Goal) -> Member {
            var member = self
            member.settings.goal = goal
            return member
        }
    }

    /// How many connections are on their way at one time: enough to keep a server busy, and fewer than the shortest
    /// queue of a listener (mosquitto's: 100), two fleets at once included.
    static let storm = 48

    let statistics: Statistics
    private let group: any EventLoopGroup
    private let port: Int
    private let source: SocketAddress?
    private let identities: String
    private let roots: NIOSSLTrustRoots

    init(port: Int, from source: SocketAddress?, authority: String, identities: String, statistics: Statistics) throws {
        group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        self.port = port
        self.source = source
        self.identities = identities
        self.statistics = statistics
        roots = .certificates(try NIOSSLCertificate.fromPEMFile(authority))
    }

    /// A connection's handle: used on the event loop only.
    typealias Handle = NIOLoopBound<LoadClient>

    /// The connections of one call of ``connect(_:)``, and what they took.
    struct Connected {
        var handles: [Handle] = []
        /// Nanoseconds from the start of each connection to its goal.
        var latencies: [UInt64] = []
        /// Of all of them together.
        var seconds = 0.0
        var processor = 0.0

        var figures: [String: Double] {
            let sorted = latencies.sorted()
            return [
                "connected": Double(handles.count), "seconds": seconds, "load_cpu": processor,
                "p50_ms": Statistics.percentile(0.5, of: sorted), "p99_ms": Statistics.percentile(0.99, of: sorted),
            ]
        }
    }

    /// The devices of these numbers, with their certificates and keys.
    func members(
        _ numbers: Range<Int>,
        settings: (Int) -> LoadClient.Settings,
        publishing: (Int) -> Publishing? = { _ in nil }
    ) throws -> [Member] {
        try numbers.map { number in
            Member(
                identity: number,
                settings: settings(number),
                publishing: publishing(number),
                context: try context(number)
            )
        }
    }

    /// Connects, and returns the connections once each has reached its goal.
    func connect(_ members: [Member]) async throws -> Connected {
        let began = MonotonicTime.now
        let processor = ProcessorTime.seconds
        return try await withThrowingTaskGroup(of: (Handle, UInt64).self) { tasks in
            var connected = Connected()
            func take(_ next: (handle: Handle, nanoseconds: UInt64)) {
                connected.handles.append(next.handle)
                connected.latencies.append(next.nanoseconds)
            }
            for (place, member) in members.enumerated() {
                if place >= Fleet.storm, let next = try await tasks.next() { take(next) }
                tasks.addTask {
                    let start = MonotonicTime.now.nanoseconds
                    return (try await self.connect(member), MonotonicTime.now.nanoseconds - start)
                }
            }
            while let next = try await tasks.next() { take(next) }
            connected.seconds = MonotonicTime.now.seconds(since: began)
            connected.processor = ProcessorTime.seconds - processor
            return connected
        }
    }

    /// Publishes on every connection; a pace that has an end may be `awaited`.
    func publish(_ pace: Publishing.Pace, on handles: [Handle], awaited: Bool) async throws {
        let loop = group.next()
        let ends = try await loop.submit {
            handles.map { handle in
                let done = awaited ? loop.makePromise(of: Void.self) : nil
                handle.value.publish(pace, done: done)
                return done?.futureResult
            }
        }.get()
        for end in ends { try await end?.get() }
    }

    /// Closes the connections.
    func end(_ handles: [Handle]) async throws {
        try await group.next().submit { for handle in handles { handle.value.end() } }.get()
    }

    private func context(_ number: Int) throws -> NIOSSLContext {
        let identity = "\(identities)/\(number).pem"
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = roots
        tls.certificateVerification = .noHostnameVerification
        tls.certificateChain = try NIOSSLCertificate.fromPEMFile(identity).map { .certificate($0) }
        tls.privateKey = .privateKey(try NIOSSLPrivateKey(file: identity, format: .pem))
        return try NIOSSLContext(configuration: tls)
    }

    private func connect(_ member: Member) async throws -> Handle {
        let loop = group.next()
        let ready = loop.makePromise(of: Void.self)
        let statistics = statistics
        var bootstrap = ClientBootstrap(group: loop).connectTimeout(.seconds(60))
        if let source { bootstrap = bootstrap.bind(to: source) }
        do {
            let channel = try await bootstrap.channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let client = LoadClient(
                        member.settings,
                        publishing: member.publishing,
                        statistics: statistics,
                        ready: ready
                    )
                    let handler = try NIOSSLClientHandler(context: member.context, serverHostname: "localhost")
                    try channel.pipeline.syncOperations.addHandlers([handler, client])
                }
            }
            .connect(host: "127.0.0.1", port: port).get()
            try await ready.futureResult.get()
            return try await channel.eventLoop.submit {
                Handle(try channel.pipeline.syncOperations.handler(type: LoadClient.self), eventLoop: loop)
            }.get()
        } catch {
            ready.fail(error)
            throw LoadError(text: "bench-\(member.identity) could not connect to port \(port): \(error)")
        }
    }
}

struct LoadError: Error, CustomStringConvertible {
    let text: String

    var description: String { text }
}
