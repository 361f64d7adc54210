import HeraldModel

#if canImport(Glibc)
import Glibc
#else
import Darwin
#endif

/// The operation of a request, by method and path.
enum RequestRoute: Equatable {
    /// `POST /3/device/<device token>`.
    case notification
    /// `POST /4/broadcasts/apps/<bundle id>`.
    case broadcast(Topic)
    /// `POST /1/apps/<bundle id>/channels`.
    case createChannel(Topic)
    /// `GET /1/apps/<bundle id>/channels`; older clients append the identifier as a further path segment.
    case readChannel(Topic, id: String?)
    /// `DELETE /1/apps/<bundle id>/channels`; older clients append the identifier as a further path segment.
    case deleteChannel(Topic, id: String?)
    /// `GET /1/apps/<bundle id>/all-channels`.
    case listChannels(Topic)
    case refused(Refusal)

    private static let channelPath: StaticString = "/1/apps/"
    private static let broadcastPath: StaticString = "/4/broadcasts/"

    init(_ fields: RequestFields) {
        self =
            fields.withValue(of: .path) { path in
                // Almost every request is a notification.
                RequestRoute.isAboutChannels(path) ? .init(path, fields) : .notification
            } ?? .notification
    }

    /// Whether a request concerns channels or broadcasts; their answers carry `apns-request-id`.
    static func isAboutChannels(_ fields: RequestFields) -> Bool {
        fields.withValue(of: .path) { isAboutChannels($0) } ?? false
    }

    private static func isAboutChannels(_ path: UnsafeRawBufferPointer) -> Bool {
        // The second byte settles it for almost every request.
        guard path.count > 1, path[1] != UInt8(ascii: "3") else { return false }
        return begins(path, with: channelPath) || begins(path, with: broadcastPath)
    }

    private static func begins(_ path: UnsafeRawBufferPointer, with text: StaticString) -> Bool {
        guard let start = path.baseAddress, path.count >= text.utf8CodeUnitCount else { return false }
        return memcmp(start, text.utf8Start, text.utf8CodeUnitCount) == 0
    }

    private init(_ path: UnsafeRawBufferPointer, _ fields: RequestFields) {
        let levels = String(decoding: path, as: UTF8.self).dropFirst().split(
            separator: "/",
            omittingEmptySubsequences: false
        )
        switch (levels.first, levels.count) {
        case ("4", 4) where levels[2] == "apps":
            self = RequestRoute.broadcast(fields, levels[3])
        case ("1", 4...5) where levels[3] == "channels":
            let id = levels.count == 5 ? String(levels[4]) : nil
            self = id == "" ? RequestRoute.badPath : RequestRoute.channels(fields, levels[2], id)
        case ("1", 4) where levels[3] == "all-channels":
            guard fields.value(of: .method, is: "GET") else {
                self = RequestRoute.badMethod("the only method for this path is GET")
                return
            }
            self = Topic(levels[2]).map { .listChannels($0) } ?? RequestRoute.badPath
        default:
            let isKnown = ["POST", "GET", "DELETE"].contains { fields.value(of: .method, is: $0) }
            self = isKnown ? RequestRoute.badPath : RequestRoute.badMethod("the methods are POST, GET and DELETE")
        }
    }

    private static func broadcast(_ fields: RequestFields, _ bundle: Substring) -> RequestRoute {
        guard fields.value(of: .method, is: "POST") else { return badMethod("the only method for this path is POST") }
        return Topic(bundle).map { .broadcast($0) } ?? badPath
    }

    private static func channels(_ fields: RequestFields, _ bundle: Substring, _ id: String?) -> RequestRoute {
        let isPost = fields.value(of: .method, is: "POST") && id == nil
        let isGet = fields.value(of: .method, is: "GET")
        guard isPost || isGet || fields.value(of: .method, is: "DELETE") else {
            return badMethod("the methods for this path are POST, GET and DELETE")
        }
        guard let bundle = Topic(bundle) else { return badPath }
        if isPost { return .createChannel(bundle) }
        return isGet ? .readChannel(bundle, id: id) : .deleteChannel(bundle, id: id)
    }

    private static let badPath = RequestRoute.refused(
        Refusal(
            .badPath,
            "the path is /1/apps/<bundle id>/channels, /1/apps/<bundle id>/all-channels or "
                + "/4/broadcasts/apps/<bundle id>"
        )
    )

    private static func badMethod(_ words: String) -> RequestRoute {
        .refused(Refusal(.methodNotAllowed, words))
    }

    /// The bundle identifier in the path; nil for a notification.
    var bundle: Topic? {
        switch self {
        case .notification, .refused: nil
        case .broadcast(let bundle), .createChannel(let bundle), .listChannels(let bundle): bundle
        case .readChannel(let bundle, _), .deleteChannel(let bundle, _): bundle
        }
    }
}
