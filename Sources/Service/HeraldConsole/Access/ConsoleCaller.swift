package import Hummingbird
import NIOCore
import Synchronization

/// The maker of a request to the console.
package struct ConsoleCaller: Sendable {
    /// Proof with which the request came.
    package enum Proof: String, Codable, CaseIterable, Sendable {
        /// The cookie of a browser.
        case session
        /// A bearer token.
        case token
        /// The control socket, which the file system protects.
        case socket
    }

    let member: ConsoleMember
    /// Their own token or session.
    let ground: ConsoleGround
    package let proof: Proof

    /// Name of the session or token; `uid 1000` at the socket.
    package var name: String { member.name }
    package var role: ConsoleRole { member.role }
}

extension ConsoleCaller {
    init(name: String, role: ConsoleRole, proof: Proof) {
        self.init(member: ConsoleMember(name: name, role: role), ground: .process, proof: proof)
    }
}

/// Context of a request to the console.
package struct ConsoleContext: RequestContext {
    package var coreContext: CoreRequestContextStorage
    /// The caller; nil for a request that anybody may make.
    package internal(set) var caller: ConsoleCaller?
    /// Whether the caller would be let in again, for answers that go on.
    var isStillIn: @Sendable () -> Bool = { true }
    /// Facts for the audit's line of this request.
    package let note = AuditNote()
    let channel: any Channel
    /// The client's IP address, also behind a trusted proxy; `socket` at the socket.
    var address: String

    package init(source: Source) {
        coreContext = CoreRequestContextStorage(source: source)
        channel = source.channel
        address = channel.remoteAddress?.ipAddress ?? "socket"
    }

    /// Whether the caller still waits for the answer, and may have it.
    var isServed: Bool { isStillIn() && channel.isActive }

    /// Does work that waits, and ends it once its caller has gone, or its token or session has ended.
    func whileIn<Result: Sendable>(_ work: @escaping @Sendable () async throws -> Result) async throws -> Result {
        try await withThrowingTaskGroup(of: Result?.self) { group in
            group.addTask { try await work() }
            group.addTask {
                while isServed { try await Task.sleep(for: .seconds(1)) }
                return nil
            }
            defer { group.cancelAll() }
            let result = try await group.next() ?? nil
            guard isStillIn() else { throw ConsoleGate.isUnknown }
            guard let result else { throw CancellationError() }
            return result
        }
    }
}

/// A body whose end comes only while its sender would still be let in: it may take half a minute after the header.
struct AdmittedBody: AsyncSequence, Sendable {
    let base: RequestBody
    let isStillIn: @Sendable () -> Bool

    struct AsyncIterator: AsyncIteratorProtocol {
        var base: RequestBody.AsyncIterator
        let isStillIn: @Sendable () -> Bool

        mutating func next() async throws -> ByteBuffer? {
            let part = try await base.next()
            guard part != nil || isStillIn() else { throw ConsoleGate.isUnknown }
            return part
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(base: base.makeAsyncIterator(), isStillIn: isStillIn)
    }
}

/// Facts that a route adds to the audit's line of its request.
package final class AuditNote: Sendable {
    private let state = Mutex<String?>(nil)

    /// The object of the request in words, where the path does not name it; never a secret.
    package var target: String? {
        get { state.withLock { $0 } }
        set { state.withLock { $0 = newValue } }
    }
}
