import HTTPTypes

/// The reason why a request is refused, for the sender.
struct ChatRefusal: Error, CustomStringConvertible {
    let status: HTTPResponse.Status
    let words: String

    init(_ status: HTTPResponse.Status, _ words: String) {
        self.status = status
        self.words = words
    }

    var description: String { words }

    static let notInRoom = ChatRefusal(.notFound, "nobody with this udid is in a room: join first")
}
