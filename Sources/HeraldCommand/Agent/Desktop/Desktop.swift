import Foundation
import HeraldDevice
import HeraldModel
import NIOCore
import NIOPosix

/// Shows a device on the desktop, by the notification service of the session bus.
struct Desktop: Sendable {
    private let view: any DeviceView
    private let environment: [String: String]
    private let say: @Sendable (String) -> Void
    /// How long the bus may take to let a client in.
    static let greetingTime = TimeAmount.seconds(10)

    /// A view of a device; `say` takes a line when there is a desktop, none, or none any more.
    init(
        _ view: any DeviceView,
        environment: [String: String] = ProcessInfo.processInfo.environment,
        say: @escaping @Sendable (String) -> Void
    ) {
        self.view = view
        self.environment = environment
        self.say = say
    }

    /// Shows what comes until it is cancelled, which takes it all away again, or there is no session bus any more.
    func run() async {
        guard let address = SessionBusAddress(environment: environment) else {
            say("no notifications on the desktop: no session bus is there (DBUS_SESSION_BUS_ADDRESS names none)")
            return
        }
        do {
            try await show(on: address, from: await view.snapshot().time)
        } catch let error as BusError {
            say("no notifications on the desktop: the session bus cannot be used: \(error)")
        } catch is CancellationError {
            // Asked to stop.
        } catch {
            say("no notifications on the desktop: the session bus went away")
        }
    }

    private func show(on address: SessionBusAddress, from start: Double) async throws {
        let channel = try await Desktop.connect(to: address)
        let files = DesktopFiles(environment: environment)
        defer { files.remove() }
        let session = DesktopSession(channel.channel, start: start, say: say)
        let deadline = channel.channel.eventLoop.scheduleTask(in: Self.greetingTime) {
            channel.channel.close(promise: nil)
        }
        defer { deadline.cancel() }
        try await channel.executeThenClose { inbound, _ in
            do {
                try await show(inbound, session, files, letIn: { deadline.cancel() })
            } catch {
                await session.end()
                throw error
            }
            await session.end()
        }
    }

    /// Brings the device to the desktop, and the desktop's answers to the device, until one of them ends.
    private func show(
        _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>,
        _ session: DesktopSession,
        _ files: DesktopFiles,
        letIn: @escaping @Sendable () -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await read(inbound, session, letIn: letIn) }
            group.addTask {
                var files = files
                for await snapshot in await view.snapshots() {
                    await files.prepare(for: snapshot, from: view)
                    await session.see(snapshot, files: files.files)
                }
            }
            try await group.next()
            group.cancelAll()
        }
    }

    /// Reads what the bus says until it ends, and does what the user does on the desktop.
    private func read(
        _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>,
        _ session: DesktopSession,
        letIn: () -> Void
    ) async throws {
        await session.greet()
        var stream = BusStream()
        var isLetIn = false
        for try await bytes in inbound {
            for event in try stream.take(bytes.readableBytesView) {
                if case .accepted = event {
                    isLetIn = true
                    letIn()
                }
                // What is no longer on the device cannot be opened or closed: nothing is to be said about that.
                if let action = await session.take(event) { try? await view.perform(action) }
            }
        }
        guard !Task.isCancelled else { return }
        throw BusError(isLetIn ? "it closed the connection" : "it does not let a client in")
    }

    private static func connect(to address: SessionBusAddress) async throws -> NIOAsyncChannel<ByteBuffer, ByteBuffer> {
        let descriptor = try address.connect()
        return try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .withConnectedSocket(descriptor) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel(wrappingChannelSynchronously: channel)
                }
            }
    }
}
