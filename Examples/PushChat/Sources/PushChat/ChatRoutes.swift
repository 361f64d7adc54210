import Foundation
import HTTPTypes
import Hummingbird
import NIOCore

/// PushChat's requests.
///
///     GET  /                      the app's page
///     POST /api/join              udid, token, name, code, languages → {"since": 41}
///     POST /api/message           udid, text                → {"id": 42}
///     POST /api/update            udid, token, languages and/or read → {}
///     POST /api/leave             udid                      → {}
///     GET  /api/messages[?since=] authorization: Bearer <udid> → {"messages": [...], "more", "members", "read"}
///     GET  /test_join.html, /test_message.html, /test_update.html, /test_leave.html
///
/// The commands take JSON, and are answered in JSON; those of a form are answered with a page.
struct ChatRoutes: Sendable {
    let store: ChatStore

    func add(to router: Router<BasicRequestContext>) {
        router.get { _, _ in ChatReply.page(PackageResources.chat_html, isFramed: true) }
        router.get("assets/:name") { _, context in
            guard let file = ChatPages.files[try context.parameters.require("name")] else {
                throw ChatRefusal(.notFound, "there is nothing at this path")
            }
            return ChatReply.bytes(file.bytes, type: file.type)
        }
        for form in ChatForm.all {
            router.get(RouterPath(form.path)) { _, _ in ChatReply.page(Array(form.page.utf8)) }
        }
        let api = router.group("api")
        api.get("messages") { request, _ in try await messages(request) }
        command("join", api, Joined.self) { input in
            let since = try await store.join(
                try input.requireUDID(),
                try input.requireToken(),
                name: try input.requireName(store.limits),
                code: try input.requireCode(store.limits),
                languages: try input.readLanguages()
            )
            return (Joined(since: since), "You are in the room.")
        }
        command("message", api, Said.self) { input in
            let now = Date().timeIntervalSince1970
            let id = try await store.say(try input.requireUDID(), try input.requireText(store.limits), now: now)
            return (Said(id: id), "Everybody else in the room is told.")
        }
        command("update", api, Done.self) { input in
            let token = try input.token.map { _ in try input.requireToken() }
            let languages = try input.readLanguages()
            guard token != nil || languages != nil || input.read != nil else {
                throw ChatRefusal(.badRequest, "token, languages or read is missing: what is to be updated?")
            }
            try await store.update(
                try input.requireUDID(),
                token: token,
                languages: languages,
                read: input.read
            )
            return (Done(), "It is noted.")
        }
        command("leave", api, Done.self) { input in
            try await store.leave(try input.requireUDID())
            return (Done(), "You have left the room.")
        }
    }

    private struct Joined: Encodable, Sendable { let since: Int64 }
    private struct Said: Encodable, Sendable { let id: Int64 }
    private struct Done: Encodable, Sendable {}

    /// A command, from an app or from a form.
    private func command<Answer: Encodable & Sendable>(
        _ name: String,
        _ api: RouterGroup<BasicRequestContext>,
        _: Answer.Type,
        _ body: @Sendable @escaping (ChatInput) async throws -> (Answer, String)
    ) {
        api.post(RouterPath(name)) { request, _ in
            let type = request.headers[.contentType]?.prefix { $0 != ";" }.lowercased()
                .trimmingCharacters(in: .whitespaces)
            switch type {
            case "application/json":
                return try ChatReply.json(try await body(try await read(request, JSONInput())).0)
            case "application/x-www-form-urlencoded":
                do {
                    let words = try await body(try await read(request, FormInput())).1
                    return ChatReply.page(ChatForm.answer(words, to: name))
                } catch let refusal as ChatRefusal {
                    return ChatReply.page(ChatForm.answer(refusal.words, to: name), status: refusal.status)
                }
            default:
                throw ChatRefusal(
                    .unsupportedMediaType,
                    "send application/json or application/x-www-form-urlencoded"
                )
            }
        }
    }

    private func read(_ request: Request, _ form: some InputForm) async throws -> ChatInput {
        let bytes: ByteBuffer
        do {
            bytes = try await request.body.collect(upTo: store.limits.bodyBytes)
        } catch is NIOTooManyBytesError {
            throw ChatRefusal(.contentTooLarge, "the request is longer than \(store.limits.bodyBytes) bytes")
        }
        return try form.input(bytes)
    }

    private func messages(_ request: Request) async throws -> Response {
        let words = request.headers[.authorization]?.split(separator: " ") ?? []
        guard words.count == 2, words[0].lowercased() == "bearer", let udid = UDID(words[1]) else {
            throw ChatRefusal(.unauthorized, "say who you are: authorization: Bearer and the udid")
        }
        var since: Int64?
        if let text = request.uri.queryParameters["since"] {
            guard let number = Int64(text), number >= 0 else {
                throw ChatRefusal(.badRequest, "since must be the number of a message, or 0")
            }
            since = number
        }
        return try ChatReply.json(try await store.missed(udid, since: since))
    }
}

/// How a body is read.
private protocol InputForm: Sendable {
    func input(_ bytes: ByteBuffer) throws -> ChatInput
}

private struct JSONInput: InputForm {
    func input(_ bytes: ByteBuffer) throws -> ChatInput {
        do {
            return try JSONDecoder().decode(ChatInput.self, from: Data(bytes.readableBytesView))
        } catch {
            throw ChatRefusal(.badRequest, "the body is not a JSON object of texts; read is a number")
        }
    }
}

private struct FormInput: InputForm {
    func input(_ bytes: ByteBuffer) throws -> ChatInput {
        do {
            return try URLEncodedFormDecoder().decode(ChatInput.self, from: String(buffer: bytes))
        } catch {
            throw ChatRefusal(.badRequest, "the form is not one of PushChat's")
        }
    }
}
