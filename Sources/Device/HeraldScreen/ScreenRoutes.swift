import Foundation
import HTTPTypes
import HeraldDevice
import HeraldJSON
import HeraldModel
import HeraldPhone
import HeraldWeb
import Hummingbird

/// The routes of the screen.
struct ScreenRoutes: Sendable {
    private let configuration: ScreenConfiguration
    private let view: any DeviceView
    private let clock: any Clock<Duration>
    private let viewers: ConcurrencyLimit
    private let waits: ConcurrencyLimit

    init(configuration: ScreenConfiguration, view: any DeviceView, clock: any Clock<Duration>) {
        self.configuration = configuration
        self.view = view
        self.clock = clock
        viewers = ConcurrencyLimit(configuration.maximumViewers)
        waits = ConcurrencyLimit(configuration.maximumWaits)
    }

    func add(to router: Router<BasicRequestContext>) {
        router.get { _, _ in WebReply.bytes(ScreenAssets.page.bytes, type: ScreenAssets.page.type) }
        router.get("assets/:name") { _, context in
            guard let asset = ScreenAssets.files[try context.parameters.require("name")] else {
                throw HTTPError(.notFound)
            }
            return WebReply.bytes(asset.bytes, type: asset.type)
        }
        let api = router.group("api")
        api.post("device") { request, _ in try await perform(request) }
        var routes = WebRoutes(api)
        routes.get("device") { _, _ in try WebReply.json(await view.snapshot()) }
        routes.get("events") { _, _ in try events() }
        routes.get("send") { _, _ in try WebReply.json(["line": configuration.sendLine]) }
        routes.get("shown", ["after", "limit"]) { request, _ in try await displayLog(request) }
        routes.get("shown/:id", ["wait"]) { request, context in
            try await shown(try context.parameters.require("id"), request)
        }
        routes.get("apps/:topic/icon") { _, context in
            try await file(.icon, of: try context.parameters.require("topic"), named: "icon")
        }
        routes.get("apps/:topic/sounds/:name") { _, context in
            let name = try context.parameters.require("name")
            return try await file(.sound, of: try context.parameters.require("topic"), named: decoded(name))
        }
        routes.get("apps/:topic/images/:name") { _, context in
            let name = try context.parameters.require("name")
            return try await file(.image, of: try context.parameters.require("topic"), named: decoded(name))
        }
    }

    private func perform(_ request: Request) async throws -> Response {
        let body = try await WebBody.bytes(of: request, limit: configuration.maximumBodyBytes)
        let (members, action): (JSON.Object, PhoneAction)
        do {
            let json = try JSON(body, rules: .lenient)
            (members, action) = (json.members ?? [:], try json.decode())
        } catch DecodingError.dataCorrupted(let context) where !context.codingPath.isEmpty {
            throw WebRefusal(400, context.debugDescription)
        } catch {
            throw WebRefusal(400, "the body is not a JSON object like {\"do\":\"unlock\"}")
        }
        if case .install = action {
            // A page must not read paths of the user's machine.
            throw WebRefusal(400, "apps are installed with `herald agent install`, not from the screen")
        }
        if case .cancel(_, id: nil) = action, members["id"] != nil {
            // Other actions name a notification by `id`: such a slip must not cancel all.
            throw WebRefusal(400, "\"cancel\" names the notification with \"notification\", not with \"id\"")
        }
        do {
            try await view.perform(action)
        } catch let error as DeviceError {
            throw WebRefusal(error.code == .notPossible ? 409 : 500, error.message)
        }
        return Response(status: .noContent)
    }

    private func events() throws -> Response {
        guard let permit = viewers.take() else {
            throw WebRefusal(503, "\(configuration.maximumViewers) pages already watch this device: close one")
        }
        return SnapshotEvents.stream(of: view, keepAlive: configuration.keepAlive, clock: clock, permit: permit)
            .response
    }

    /// `?after=REVISION&limit=NUMBER`.
    private func displayLog(_ request: Request) async throws -> Response {
        func number(_ name: String, _ range: ClosedRange<Int>, default standard: Int) throws -> Int {
            guard let text = request.uri.queryParameters[name[...]] else { return standard }
            guard let number = Int(text), range.contains(number) else {
                throw WebRefusal(400, "\(name) must be a number from \(range.lowerBound) to \(range.upperBound)")
            }
            return number
        }
        let after = try number("after", 0...Int.max, default: 0)
        let limit = try number("limit", 1...configuration.maximumRecords, default: 100)
        return try WebReply.json(await view.displayLog(after: after, limit: limit))
    }

    private func shown(_ text: String, _ request: Request) async throws -> Response {
        let wait = try wait(request)
        guard let record = try await record(named: decoded(text), within: wait) else {
            let late = wait > .zero ? " within \(wait)" : ""
            throw WebRefusal(
                404,
                "no notification with this apns-id or local identifier has arrived on this device\(late)"
            )
        }
        return try WebReply.json(record)
    }

    private func record(named name: String, within wait: Duration) async throws -> DisplayRecord? {
        guard wait > .zero else { return await view.displayRecord(named: name, within: .zero) }
        guard let permit = waits.take() else {
            throw WebRefusal(503, "\(configuration.maximumWaits) requests already wait: try again later")
        }
        defer { permit.release() }
        return await view.displayRecord(named: name, within: wait)
    }

    /// `?wait=SECONDS`.
    private func wait(_ request: Request) throws -> Duration {
        guard let text = request.uri.queryParameters["wait"] else { return .zero }
        let longest = configuration.longestWait
        guard let seconds = Double(text), seconds >= 0, seconds <= Double(longest.components.seconds) else {
            throw WebRefusal(400, "wait must be seconds from 0 to \(longest.components.seconds)")
        }
        return .milliseconds(Int64(seconds * 1000))
    }

    private func file(_ kind: BundleFileKind, of topic: String, named name: String) async throws -> Response {
        guard let topic = Topic(decoded(topic)), let bytes = await view.file(kind, of: topic, named: name) else {
            throw WebRefusal(404, "there is no such \(kind)")
        }
        return WebReply.bytes(bytes, type: FileType.name(of: bytes))
    }

    private func decoded(_ text: String) -> String {
        text.removingPercentEncoding ?? text
    }
}
