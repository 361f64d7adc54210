import Foundation
import HTTPTypes
import HeraldWeb
import Hummingbird

/// The route of the stream of events.
final class EventRoutes: Sendable {
    /// Interval of looks for what is new: at most four messages a second.
    private static let interval = Duration.milliseconds(250)
    private static let keepAlive = Duration.seconds(15)

    private let live: LiveConsole
    private let streams: CallerShares

    init(live: LiveConsole, connections: Int) {
        self.live = live
        streams = CallerShares(limit: connections / 4, share: 4, what: "pages watch this service")
    }

    func register(_ api: inout AdminWork) {
        api.respond(to: AdminAPI.events) { call in try await self.stream(call) }
    }

    private func stream(_ call: Call<NoContent>) async throws -> Response {
        let (request, context) = (call.request, call.context)
        let kinds = try call(AdminAPI.eventKinds) ?? Set(LiveEvents.Kind.allCases)
        let search = try call(AdminAPI.eventSearch) ?? ""
        let leave = try streams.take(context.caller)
        var follower: (any LineFollower)?
        do {
            if kinds.contains(.lines), let lines = live.lines {
                follower = try await lines.follow(search, after: try place(request))
                guard follower != nil else { throw WebRefusal(503, "too many pages watch the journal: close one") }
            }
        } catch {
            leave()
            throw error
        }
        let events = LiveEvents(live, kinds, follower: follower, end: leave)
        return EventStream(
            keepAlive: Self.keepAlive,
            clock: ContinuousClock(),
            greets: true,
            watch: { signal in
                // A caller who signs out, or whose token is revoked, gets no further events.
                while context.isServed {
                    for _ in 0..<4 {
                        signal()
                        guard (try? await Task.sleep(for: Self.interval)) != nil else { return }
                    }
                }
            },
            take: { try events.take() }
        ).response
    }

    /// `Last-Event-ID`, which a browser sends after an interruption.
    private func place(_ request: Request) throws -> UInt64? {
        guard let name = HTTPField.Name("last-event-id"), let text = request.headers[name], !text.isEmpty else {
            return nil
        }
        guard let place = UInt64(text) else {
            throw AdminError(.badRequest, "last-event-id must be the id of an event of this stream")
        }
        return place
    }
}
