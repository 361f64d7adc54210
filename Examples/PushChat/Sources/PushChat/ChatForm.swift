/// A command as a web form, to play a user without a device: `test_join.html` and so on.
struct ChatForm: Sendable {
    let command: String
    let title: String
    /// Names, labels and initial values.
    let fields: [(name: String, label: String, value: String)]

    var path: String { "test_\(command).html" }

    static let all: [ChatForm] = [
        ChatForm(command: "join", title: "Join a room", fields: [udid, token, languages, name, code]),
        ChatForm(command: "message", title: "Send a message", fields: [udid, ("text", "Message", "")]),
        ChatForm(command: "update", title: "Report another token or language", fields: [udid, token, languages]),
        ChatForm(command: "leave", title: "Leave the room", fields: [udid]),
    ]

    private static let udid = ("udid", "UDID (40 hexadecimal digits)", "0123456789abcdef0123456789abcdef01234567")
    // No service issued it: notifications for it are refused.
    private static let token = (
        "token", "Device token (64 hexadecimal digits)",
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
    )
    private static let languages = ("languages", "Languages, best first (de-CH,en)", "en")
    private static let name = ("name", "Nickname", "")
    private static let code = ("code", "Secret code", "")

    var page: String {
        let inputs = fields.map { field in
            """
            <label>\(field.label.asHTML)
            <input name="\(field.name)" value="\(field.value.asHTML)" autocomplete="off" required></label>
            """
        }
        return ChatForm.page(
            title,
            """
            <form method="post" action="/api/\(command)">
            \(inputs.joined(separator: "\n"))
            <button>Submit</button>
            </form>
            """
        )
    }

    /// The answer to a form.
    static func answer(_ words: String, to command: String) -> String {
        page("PushChat", "<p role=\"status\">\(words.asHTML)</p>\n<p><a href=\"/test_\(command).html\">Back</a></p>")
    }

    private static func page(_ title: String, _ content: String) -> String {
        let links = all.map { "<a href=\"/\($0.path)\">\($0.title.asHTML)</a>" }
        return """
            <!doctype html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <title>\(title.asHTML)</title>
            <link rel="stylesheet" href="/assets/forms.css">
            <link rel="icon" href="/assets/icon.svg" type="image/svg+xml">
            </head>
            <body>
            <h1>\(title.asHTML)</h1>
            \(content)
            <nav>\(links.joined(separator: " "))</nav>
            </body>
            </html>

            """
    }
}

/// The files of the pages, which are in the binary.
enum ChatPages {
    static let files: [String: (type: String, bytes: [UInt8])] = [
        "chat.css": ("text/css; charset=utf-8", PackageResources.chat_css),
        "chat.js": ("text/javascript; charset=utf-8", PackageResources.chat_js),
        "forms.css": ("text/css; charset=utf-8", PackageResources.forms_css),
        "icon.svg": ("image/svg+xml", PackageResources.icon_svg),
        "words.js": ("text/javascript; charset=utf-8", PackageResources.words_js),
    ]
}

extension String {
    /// The text as it stands in HTML, between tags and in quoted attributes.
    var asHTML: String {
        var escaped = ""
        for character in unicodeScalars {
            switch character {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            default: escaped.unicodeScalars.append(character)
            }
        }
        return escaped
    }
}
