import Foundation
import HTTPTypes
import HeraldWeb
import Hummingbird
import Synchronization

/// The route of the stream of events.
final class EventRoutes: Sendable {
    /// The most streams at a time.
    static let limit = 24
    /// Interval of looks for what is new: at most four messages a second.
    private static let interval = Duration.milliseconds(250)
    private static let keepAlive = Duration.seconds(15)

    private let live: LiveConsole
    private let open = Mutex(0)

    init(live: LiveConsole) {
        self.live = live
    }

    func add(to group: RouterGroup<ConsoleContext>) {
        var routes = WebRoutes(group)
        routes.get("events", ["want", "q"]) { request, context in try await self.stream(request, context) }
        routes.refuseOtherMethods()
    }

    private func stream(_ request: Request, _ context: ConsoleContext) async throws -> Response {
        let kinds = try kinds(request)
        let search = request.uri.queryParameters["q"].map(String.init) ?? ""
        var follower: (any LineFollower)?
        if kinds.contains(.lines), let lines = live.lines {
            follower = try await lines.follow(search.removingPercentEncoding ?? search, after: try place(request))
            guard follower != nil else { throw Self.isFull }
        }
        guard take() else { throw Self.isFull }
        let events = LiveEvents(live, kinds, follower: follower) { self.open.withLock { $0 -= 1 } }
        return EventStream(
            keepAlive: Self.keepAlive,
            clock: ContinuousClock(),
            greets: true,
            watch: { signal in
                // Whoever signs out, or whose token is revoked, sees no more.
                while context.isStillIn() {
                    for _ in 0..<4 {
                        signal()
                        guard (try? await Task.sleep(for: Self.interval)) != nil else { return }
                    }
                }
            },
            take: { try events.take() }
        ).response
    }

    private func take() -> Bool {
        open.withLock { open in
            guard open < Self.limit else { return false }
            open += 1
            return true
        }
    }

    private static let isFull = WebRefusal(503, "\(limit) pages already watch this service: close one")

    /// `?want=counts,lines,problems,status,caught`: all without it.
    private func kinds(_ request: Request) throws -> Set<LiveEvents.Kind> {
        guard let text = request.uri.queryParameters["want"] else { return Set(LiveEvents.Kind.allCases) }
        let words = (text.removingPercentEncoding ?? String(text)).split(separator: ",")
        let kinds = words.compactMap { LiveEvents.Kind(rawValue: String($0)) }
        guard !words.isEmpty, kinds.count == words.count else {
            let names = LiveEvents.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw AdminError(.badRequest, "want must be kinds of events with commas between them: \(names)")
        }
        return Set(kinds)
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
