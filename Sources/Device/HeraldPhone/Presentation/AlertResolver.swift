import HeraldJSON

/// Resolves the texts of an alert: from the payload, or from the bundle by key.
struct AlertResolver {
    let bundle: AppBundle?
    let language: String?
    /// Whether `title`, `subtitle` and `body` may be dictionaries with a key, as in alerts of Live Activities.
    var allowsInnerKeys = false

    /// The texts of `aps.alert`; nil if it is neither a string nor a dictionary.
    func alert(_ value: JSON) -> Presentation.Alert? {
        switch value {
        case .string(let body):
            return Presentation.Alert(title: nil, subtitle: nil, body: body)
        case .object(let members):
            return Presentation.Alert(
                title: text(members["title"], key: members["title-loc-key"], arguments: members["title-loc-args"]),
                subtitle: text(
                    members["subtitle"],
                    key: members["subtitle-loc-key"],
                    arguments: members["subtitle-loc-args"]
                ),
                body: text(members["body"], key: members["loc-key"], arguments: members["loc-args"])
            )
        default:
            return nil
        }
    }

    /// Resolves one text: the bundle's text for the key, else the payload's text, else the key itself.
    private func text(_ literal: JSON?, key: JSON?, arguments: JSON?) -> String? {
        if allowsInnerKeys, let members = literal?.members {
            return text(nil, key: members["loc-key"], arguments: members["loc-args"])
        }
        guard let key = key?.text else { return literal?.text }
        guard let format = bundle?.text(key, in: language)?.format else { return literal?.text ?? key }
        return FormatString(format).filled(with: (arguments?.elements ?? []).map(\.argument))
    }

    /// Resolves a title by its key; an unknown key stands for itself.
    func title(_ key: String) -> String {
        guard let format = bundle?.text(key, in: language)?.format else { return key }
        return FormatString(format).filled(with: [])
    }
}
