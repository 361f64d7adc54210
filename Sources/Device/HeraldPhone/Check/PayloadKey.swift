import HeraldJSON

/// The keys that Apple documents, with their types ("Generating a remote notification").
struct PayloadKey {
    /// The type of a value.
    enum Kind {
        case text
        case textOrNull
        case number
        case one
        case truth
        case texts
        case textsOrNull
        case dictionary
        case alert
        case sound
        /// A text, or a dictionary with a key of the bundle, as in alerts of Live Activities.
        case textOrKey

        func fits(_ value: JSON) -> Bool {
            switch (self, value) {
            case (.text, .string), (.textOrNull, .string), (.textOrNull, .null), (.number, .number), (.truth, .boolean),
                (.dictionary, .object), (.alert, .string), (.alert, .object), (.sound, .string), (.sound, .object),
                (.textOrKey, .string), (.textOrKey, .object), (.textsOrNull, .null):
                true
            case (.one, .number): true
            case (.texts, .array(let elements)), (.textsOrNull, .array(let elements)):
                elements.allSatisfy { $0.text != nil }
            default: false
            }
        }

        /// The description, as in "must be …".
        var words: String {
            switch self {
            case .text: "a string"
            case .textOrNull: "a string or null"
            case .number: "a number"
            case .one: "the number 1"
            case .truth: "true or false"
            case .texts: "an array of strings"
            case .textsOrNull: "an array of strings, or null"
            case .dictionary: "a dictionary"
            case .alert, .sound: "a string or a dictionary"
            case .textOrKey: "a string, or a dictionary with loc-key"
            }
        }
    }

    /// The keys of `aps`.
    static let aps: [String: Kind] = [
        "alert": .alert, "badge": .number, "sound": .sound, "thread-id": .text, "category": .text,
        "content-available": .one, "mutable-content": .one, "target-content-id": .text, "interruption-level": .text,
        "relevance-score": .number, "filter-criteria": .text, "stale-date": .number, "content-state": .dictionary,
        "timestamp": .number, "event": .text, "dismissal-date": .number, "attributes-type": .text,
        "attributes": .dictionary, "input-push-token": .one, "input-push-channel": .text, "content-changed": .truth,
        "url-args": .texts,
    ]
    /// The keys of `aps.alert`.
    static let alert: [String: Kind] = [
        "title": .textOrKey, "subtitle": .textOrKey, "body": .textOrKey, "launch-image": .text,
        "title-loc-key": .textOrNull, "title-loc-args": .textsOrNull, "subtitle-loc-key": .textOrNull,
        "subtitle-loc-args": .textsOrNull, "loc-key": .textOrNull, "loc-args": .textsOrNull,
        "action-loc-key": .textOrNull, "action": .text, "summary-arg": .text, "summary-arg-count": .number,
        "sound": .text,
    ]
    /// The keys of `aps.sound`.
    static let sound: [String: Kind] = ["critical": .number, "name": .text, "volume": .number]
    /// The keys of `aps` that are a probable mistake beside `aps`.
    static let misplaced: Set<String> = [
        "alert", "badge", "sound", "content-available", "mutable-content", "thread-id", "interruption-level",
    ]
}
