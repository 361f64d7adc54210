/// Finds the texts of an alert: from the payload, or from the bundle by their keys.
struct AlertResolver {
    let bundle: AppBundle?
    let language: String?
    /// Whether a text's own place may hold its key, as in alerts of Live Activities.
    var allowsInnerKeys = false

    /// The texts of `aps.alert`; nil where it is of no kind that has texts.
    func alert(_ value: PayloadValue) -> Presentation.Alert? {
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

    /// One text: what its key stands for in the bundle, else what the payload says, else the key itself.
    private func text(_ literal: PayloadValue?, key: PayloadValue?, arguments: PayloadValue?) -> String? {
        if allowsInnerKeys, let members = literal?.members {
            return text(nil, key: members["loc-key"], arguments: members["loc-args"])
        }
        guard let key = key?.text else { return literal?.text }
        guard let format = bundle?.text(key, in: language)?.format else { return literal?.text ?? key }
        return FormatString(format).filled(with: (arguments?.elements ?? []).map(\.argument))
    }

    /// A title by its key; a key that is nowhere stands for itself.
    func title(_ key: String) -> String {
        guard let format = bundle?.text(key, in: language)?.format else { return key }
        return FormatString(format).filled(with: [])
    }
}
