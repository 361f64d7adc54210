import HeraldJSON
import HeraldWeb

/// A request body that has only the keys of its `CodingKeys`.
protocol StrictDecodable: Decodable {
    associatedtype CodingKeys: CodingKey, CaseIterable
}

/// Refuses unknown keys, since a misspelt key would otherwise be ignored.
struct StrictKeys<Value: StrictDecodable>: Decodable {
    let value: Value

    init(from decoder: any Decoder) throws {
        let known = Value.CodingKeys.allCases.map(\.stringValue)
        if let unknown = try JSON.Object(from: decoder).names.filter({ !known.contains($0) }).min() {
            throw WebRefusal(400, "unknown key `\(unknown.prefix(64))`: the keys are \(known.joined(separator: ", "))")
        }
        value = try Value(from: decoder)
    }
}
