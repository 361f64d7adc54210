import HTTPTypes
import HeraldModel

/// The input of a command, from JSON or a form.
///
/// Each command requires some of its members.
struct ChatInput: Decodable, Sendable {
    var udid: String?
    var token: String?
    var name: String?
    var code: String?
    /// The preferred languages, like `de-CH,en`.
    var languages: String?
    var text: String?
    var read: Int64?

    /// The user: 40 hexadecimal digits that the app creates once and keeps secret.
    func requireUDID() throws -> UDID {
        guard let udid = UDID(try require(udid, "udid")) else { throw ChatRefusal(.badRequest, UDID.rule) }
        return udid
    }

    /// The device token, as the app got it from the device.
    func requireToken() throws -> DeviceToken {
        guard let token = DeviceToken(try require(token, "token").lowercased()) else {
            throw ChatRefusal(.badRequest, "token must be the device token: 64 hexadecimal digits")
        }
        return token
    }

    /// The preferred languages; nil if the app does not say.
    func readLanguages() throws -> ChatLanguages? {
        try languages.map { text in
            guard let languages = ChatLanguages(text) else { throw ChatRefusal(.badRequest, ChatLanguages.rule) }
            return languages
        }
    }

    func requireName(_ limits: ChatLimits) throws -> String {
        try line(name, "name", limits.nameBytes)
    }

    func requireCode(_ limits: ChatLimits) throws -> String {
        try line(code, "code", limits.codeBytes)
    }

    func requireText(_ limits: ChatLimits) throws -> String {
        let text = try require(text, "text")
        guard text.utf8.count <= limits.textBytes else {
            throw ChatRefusal(.contentTooLarge, "text is longer than \(limits.textBytes) bytes: send it in parts")
        }
        guard text.contains(where: { !$0.isWhitespace }) else { throw ChatRefusal(.badRequest, "text is empty") }
        guard !text.unicodeScalars.contains("\0") else { throw ChatRefusal(.badRequest, "text has a zero byte in it") }
        return text
    }

    private func require(_ text: String?, _ member: String) throws -> String {
        guard let text, !text.isEmpty else { throw ChatRefusal(.badRequest, "\(member) is missing") }
        return text
    }

    /// A text on one line, without surrounding blanks.
    private func line(_ text: String?, _ member: String, _ limit: Int) throws -> String {
        let words = try require(text, member).split(whereSeparator: \.isWhitespace).joined(separator: " ")
        guard !words.isEmpty else { throw ChatRefusal(.badRequest, "\(member) is empty") }
        guard words.utf8.count <= limit else {
            throw ChatRefusal(.badRequest, "\(member) is longer than \(limit) bytes")
        }
        let isPlain = words.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
        guard isPlain else { throw ChatRefusal(.badRequest, "\(member) has a control character in it") }
        return words
    }
}

/// The identity of a user: 40 hexadecimal digits.
///
/// Everybody who knows it can act as that user.
struct UDID: Hashable, Sendable {
    static let rule = "udid must be 40 hexadecimal digits, made up once for each installation"

    let hex: String

    init?(_ text: some StringProtocol) {
        guard text.utf8.count == 40, text.allSatisfy({ $0.isASCII && $0.isHexDigit }) else { return nil }
        hex = text.lowercased()
    }
}
