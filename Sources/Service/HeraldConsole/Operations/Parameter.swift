import Foundation
package import HeraldJSON
package import HeraldModel

/// A parameter of a path or a query, without the type of its value.
package protocol AnyParameter: Sendable {
    var name: String { get }
    var words: String { get }
    var schema: JSON { get }
    var isHeader: Bool { get }
    /// How often a query may have it.
    var most: Int { get }
}

/// A parameter of a path or a query.
package struct Parameter<Value: Sendable>: AnyParameter {
    package let name: String
    package let words: String
    package let schema: JSON
    package let isHeader: Bool
    package var most = 1
    let read: @Sendable (String) throws -> Value

    /// `schema` is that of the text, `words` are the description, and `read` throws ``AdminError`` with what to write.
    package init(
        _ name: String,
        _ schema: JSON,
        _ words: String,
        isHeader: Bool = false,
        read: @escaping @Sendable (String) throws -> Value
    ) {
        (self.name, self.schema, self.words, self.isHeader, self.read) = (name, schema, words, isHeader, read)
    }

    /// The parameter with a value, for a client.
    package func callAsFunction(_ value: some CustomStringConvertible) -> ParameterValue {
        ParameterValue(name: name, value: value.description)
    }
}

/// A parameter with its value.
package struct ParameterValue: Hashable, Sendable {
    package let name: String
    package let value: String

    var escaped: String { value.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "" }
}

extension Parameter where Value == Int {
    package init(_ name: String, _ range: ClosedRange<Int>, standard: Int? = nil, _ words: String) {
        var schema: JSON.Object = ["type": "integer", "minimum": .number(JSON.Number(range.lowerBound))]
        let isOpen = range.upperBound == Int.max
        if !isOpen { schema["maximum"] = .number(JSON.Number(range.upperBound)) }
        schema["default"] = standard.map { .number(JSON.Number($0)) }
        let rule = isOpen ? "at least \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
        self.init(name, .object(schema), words) { text in
            guard let number = Int(text), range.contains(number) else {
                throw AdminError(.badRequest, "\(name) must be a number \(rule)")
            }
            return number
        }
    }
}

extension Parameter where Value == Bool {
    /// `true` or `false`.
    package init(_ name: String, _ words: String) {
        self.init(name, ["type": "boolean"], words) { text in
            guard let truth = Bool(text) else { throw AdminError(.badRequest, "\(name) must be true or false") }
            return truth
        }
    }
}

extension Parameter where Value == String {
    /// A text of limited length.
    package init(_ name: String, most: Int = 512, _ words: String) {
        self.init(name, ["type": "string", "maxLength": .number(JSON.Number(most))], words) { text in
            guard text.utf8.count <= most, !text.utf8.contains(0) else {
                throw AdminError(.badRequest, "\(name) must have at most \(most) bytes, and no zero byte")
            }
            return text
        }
    }
}

extension Parameter where Value == Duration {
    /// Seconds to wait.
    package init(wait name: String, most: Int, _ words: String) {
        let schema: JSON = [
            "type": "number", "minimum": 0, "maximum": .number(JSON.Number(most)), "default": 0,
        ]
        self.init(name, schema, words) { text in
            guard let seconds = Double(text), (0...Double(most)).contains(seconds) else {
                throw AdminError(.badRequest, "\(name) must be a number of seconds from 0 to \(most)")
            }
            return .milliseconds(Int64(seconds * 1000))
        }
    }
}

extension Parameter where Value == LabelFilter {
    /// Labels that a device must have.
    package init(labels name: String, most: Int, _ words: String) {
        let one: JSON = ["type": "string", "pattern": "^[^=]+(=[\\s\\S]+)?$", "maxLength": 512]
        self.init(name, ["type": "array", "items": one, "maxItems": .number(JSON.Number(most))], words) { text in
            guard text.utf8.count <= 4 * 512, let label = LabelFilter(text) else {
                throw AdminError(.badRequest, "\(name) must be \(LabelFilter.rule)")
            }
            return label
        }
        self.most = most
    }
}

extension Parameter where Value: RawRepresentable & CaseIterable, Value.RawValue == String {
    /// One of the values of a type.
    package init(_ name: String, standard: Value? = nil, _ words: String) {
        let values = Value.allCases.map(\.rawValue)
        var schema: JSON.Object = ["enum": .array(values.map { .string($0) })]
        schema["default"] = standard.map { .string($0.rawValue) }
        let rule = values.count == 2 ? values.joined(separator: " or ") : "one of \(values.joined(separator: ", "))"
        self.init(name, .object(schema), words) { text in
            guard let value = Value(rawValue: text) else { throw AdminError(.badRequest, "\(name) must be \(rule)") }
            return value
        }
    }
}

/// Parameters that several requests have.
package enum Ask {
    package static let id = Parameter("id", ["type": "string"], "An identifier, as the list shows it.") { $0 }
    package static let limit = Parameter(
        "limit",
        PageRequest.limits,
        standard: PageRequest.standard,
        "The most items of the answer."
    )
    package static let after = Parameter<String>("after", "The `next` of the part before; without it, the first part.")
    package static let environment = Parameter<PushEnvironment>("environment", "One environment; without it, both.")
    package static let topic = topic("topic", "A bundle identifier; without it, all.")
    /// `apns-id` or `apns-unique-id` in a path.
    package static let notification = Parameter(
        "id",
        ["type": "string", "format": "uuid"],
        "An `apns-id` or `apns-unique-id`."
    ) { text in
        guard let id = NotificationID(text) else {
            throw AdminError(.badRequest, "the path must have an apns-id or apns-unique-id, a UUID")
        }
        return id
    }

    static let page: [any AnyParameter] = [limit, after]

    package static func topic(_ name: String, _ words: String) -> Parameter<Topic> {
        Parameter(name, ["type": "string"], words) { text in
            guard let topic = Topic(text) else {
                throw AdminError(.badRequest, "\(name) must be a bundle identifier like com.example.app")
            }
            return topic
        }
    }
}
