import Foundation
package import HeraldPhone
import NIOCore
import NIOPosix

/// Shows a device's notifications on the desktop, with the notification service of the session bus.
package struct Desktop: Sendable {
    private let view: any DeviceView
    /// The notifications that were on the device before it started.
    private let known: Set<String>
    private let environment: [String: String]
    private let say: @Sendable (String) -> Void
    static let authenticationTimeout = TimeAmount.seconds(10)

    /// Creates a view of a device that shows nothing of the snapshot `before`; `say` prints a line when the desktop appears, is missing, or disappears.
    package init(
        _ view: any DeviceView,
        before: PhoneSnapshot,
        environment: [String: String] = ProcessInfo.processInfo.environment,
        say: @escaping @Sendable (String) -> Void
    ) {
        self.view = view
        known = Set(before.notifications.map(\.id))
        self.environment = environment
        self.say = say
    }

    /// Shows notifications until it is cancelled or the session bus closes the connection.
    package func run() async {
        guard let address = SessionBusAddress(environment: environment) else {
            say("no notifications on the desktop: there is no session bus (DBUS_SESSION_BUS_ADDRESS names none)")
            return
        }
        do {
            try await show(on: address)
        } catch let error as BusError {
            say("no notifications on the desktop: the session bus cannot be used: \(error)")
        } catch is CancellationError {
            // Asked to stop.
        } catch {
            say("no notifications on the desktop: the session bus closed the connection")
        }
    }

    private func show(on address: SessionBusAddress) async throws {
        let channel = try await Desktop.connect(to: address)
        let files = DesktopFiles(environment: environment)
        defer { files.remove() }
        let session = DesktopSession(channel.channel, known: known, say: say)
        let deadline = channel.channel.eventLoop.scheduleTask(in: Self.authenticationTimeout) {
            channel.channel.close(promise: nil)
        }
        defer { deadline.cancel() }
        try await channel.executeThenClose { inbound, _ in
            do {
                try await show(inbound, session, files, accepted: { deadline.cancel() })
            } catch {
                await session.end()
                throw error
            }
            await session.end()
        }
    }

    /// Forwards snapshots to the desktop, and the desktop's answers to the device, until one of them ends.
    private func show(
        _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>,
        _ session: DesktopSession,
        _ files: DesktopFiles,
        accepted: @escaping @Sendable () -> Void
    ) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await read(inbound, session, accepted: accepted) }
            group.addTask {
                var files = files
                for await snapshot in await view.snapshots() {
                    await files.prepare(for: snapshot, from: view)
                    await session.show(snapshot, files: files.files)
                }
            }
            try await group.next()
            group.cancelAll()
        }
    }

    /// Reads from the bus to its end, and performs the user's actions on the desktop.
    private func read(
        _ inbound: NIOAsyncChannelInboundStream<ByteBuffer>,
        _ session: DesktopSession,
        accepted: () -> Void
    ) async throws {
        await session.authenticate()
        var stream = BusStream()
        var isAccepted = false
        for try await bytes in inbound {
            for event in try stream.take(bytes.readableBytesView) {
                if case .accepted = event {
                    isAccepted = true
                    accepted()
                }
                // The notification may have been removed from the device meanwhile; that is not an error.
                for action in await session.take(event) { try? await view.perform(action) }
            }
        }
        guard !Task.isCancelled else { return }
        throw BusError(isAccepted ? "it closed the connection" : "it refuses the client")
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
