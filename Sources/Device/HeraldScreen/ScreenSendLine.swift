/// The answer of `GET /api/send`: a command line that sends the device a notification.
struct ScreenSendLine: Encodable {
    /// The line, with `{token}` and `{topic}` where those of an app belong; nil if none is known.
    let line: String?

    private enum CodingKeys: String, CodingKey {
        case line
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(line, forKey: .line)
    }
}
