import ArgumentParser
import Configuration
import HeraldService

/// The command line options of a group: one a row.
///
/// ArgumentParser finds options by reflection. The mirror of this type shows an option for each row, and `init(from:)`
/// decodes each by its name, so that each option is declared once.
struct SettingOptions<Group: SettingGroup>: ParsableArguments, CustomReflectable {
    /// The options that were typed.
    private(set) var typed: [SettingKey: ConfigContent] = [:]

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init() {}

    init(from decoder: any Decoder) throws {
        let options = try decoder.container(keyedBy: Name.self)
        for key in Group.rows.map(\.key) {
            let name = Name(stringValue: key.name)
            switch key.shape {
            case .text:
                typed[key] = try options.decode(Option<String?>.self, forKey: name).wrappedValue.map { .string($0) }
            case .texts:
                let texts = try options.decode(Option<[String]>.self, forKey: name).wrappedValue
                if !texts.isEmpty { typed[key] = .stringArray(texts) }
            case .number:
                typed[key] = try options.decode(Option<Int?>.self, forKey: name).wrappedValue.map { .int($0) }
            case .flag:
                typed[key] = try options.decode(Flag<Bool?>.self, forKey: name).wrappedValue.map { .bool($0) }
            case .blocks:
                break
            }
        }
    }

    var customMirror: Mirror {
        let options: [(label: String?, value: Any)] = Group.rows.map { row in
            let name = NameSpecification.customLong(row.key.name)
            let help = ArgumentHelp(row.fullHelp, valueName: row.valueName)
            let option: Any =
                switch row.key.shape {
                case .texts: Option<[String]>(wrappedValue: [], name: name, help: help)
                case .number: Option<Int?>(name: name, help: help)
                case .flag: Flag<Bool?>(name: name, inversion: .prefixedNo, help: help)
                case .text, .blocks: Option<String?>(name: name, help: help)
                }
            return (row.key.name, option)
        }
        return Mirror(self, children: options)
    }
}
