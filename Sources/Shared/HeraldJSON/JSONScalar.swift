import Foundation

/// A type that is one JSON value when it is decoded and encoded.
protocol JSONScalar {
    /// Whether a number that does not fit is the reason if the initializer fails.
    static var isNumber: Bool { get }
    init?(json: JSON)
    /// The value; nil for a `Double` that JSON does not have.
    var json: JSON? { get }
}

extension JSONScalar {
    static var isNumber: Bool { false }
}

extension JSON: JSONScalar {
    init?(json: JSON) { self = json }
    var json: JSON? { self }
}

extension Bool: JSONScalar {
    init?(json: JSON) {
        guard let truth = json.truth else { return nil }
        self = truth
    }

    var json: JSON? { .boolean(self) }
}

extension String: JSONScalar {
    init?(json: JSON) {
        guard let text = json.text else { return nil }
        self = text
    }

    var json: JSON? { .string(self) }
}

extension Double: JSONScalar {
    static var isNumber: Bool { true }

    init?(json: JSON) {
        guard let double = json.double else { return nil }
        self = double
    }

    var json: JSON? { JSON.Number(self).map { .number($0) } }
}

extension Float: JSONScalar {
    static var isNumber: Bool { true }

    init?(json: JSON) {
        guard let double = json.double, Float(double).isFinite else { return nil }
        self = Float(double)
    }

    var json: JSON? { isFinite ? JSON.Number(Double(description) ?? Double(self)).map { .number($0) } : nil }
}

/// Bytes in Base64, as Foundation's coders have them.
extension Data: JSONScalar {
    init?(json: JSON) {
        guard let data = json.text.flatMap({ Data(base64Encoded: $0) }) else { return nil }
        self = data
    }

    var json: JSON? { .string(base64EncodedString()) }
}

/// An address as its text, as Foundation's coders have it.
extension URL: JSONScalar {
    init?(json: JSON) {
        guard let url = json.text.flatMap({ URL(string: $0) }) else { return nil }
        self = url
    }

    var json: JSON? { .string(absoluteString) }
}

/// A number of up to 38 digits, as Foundation's coders have it.
extension Decimal: JSONScalar {
    static var isNumber: Bool { true }

    init?(json: JSON) {
        guard let decimal = json.number.flatMap({ Decimal(string: $0.text) }), !decimal.isNaN else { return nil }
        self = decimal
    }

    var json: JSON? { isNaN ? nil : .number(JSON.Number(checked: description)) }
}

extension JSONScalar where Self: FixedWidthInteger {
    static var isNumber: Bool { true }

    init?(json: JSON) {
        guard let integer = json.number?.exactly(Self.self) else { return nil }
        self = integer
    }

    var json: JSON? { .number(JSON.Number(self)) }
}

extension Int: JSONScalar {}
extension Int8: JSONScalar {}
extension Int16: JSONScalar {}
extension Int32: JSONScalar {}
extension Int64: JSONScalar {}
extension UInt: JSONScalar {}
extension UInt8: JSONScalar {}
extension UInt16: JSONScalar {}
extension UInt32: JSONScalar {}
extension UInt64: JSONScalar {}

/// A position in an array, or a member as it is written.
struct JSONKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(_ index: Int) { (stringValue, intValue) = (String(index), index) }
    init?(intValue: Int) { self.init(intValue) }
    init(stringValue: String) { (self.stringValue, intValue) = (stringValue, nil) }
}
