import Configuration
import Foundation
package import HeraldListener
import HeraldModel

/// A configuration whose initial values are the defaults of its settings.
package protocol SettingTarget: Sendable {
    static var defaults: Self { get }
}

/// One setting: where its value belongs, which values are allowed, and its help.
///
/// Options, environment variables, the configuration file, error messages, the comparison on SIGHUP and the manual all
/// follow from it.
package struct Setting<Target: SettingTarget>: Sendable {
    package typealias Path<Value> = any WritableKeyPath<Target, Value> & Sendable

    package let key: SettingKey
    /// The word for the value in the help.
    package let valueName: String
    package let help: String
    /// The help with the allowed values and the default.
    ///
    /// Made once: ArgumentParser asks for the options of a command many times.
    package let fullHelp: String
    /// The allowed values in words; empty if the help says enough.
    package let allowed: String
    /// Whether SIGHUP applies a change; else the next start does.
    let isLive: Bool
    /// Sets the target's value if a source has one.
    package let read: @Sendable (Settings, inout Target) throws -> Void
    /// The target's value as YAML.
    package let text: @Sendable (Target) -> String
    let differs: @Sendable (Target, Target) -> Bool

    package init<Value: Equatable & Sendable>(
        _ name: String,
        _ path: Path<Value>,
        shape: SettingKey.Shape = .text,
        example: String? = nil,
        valueName: String,
        allowed: String = "",
        isLive: Bool,
        help: String,
        show: @escaping @Sendable (Value) -> String,
        read: @escaping @Sendable (Settings, SettingKey) throws -> Value?
    ) {
        let usual = show(Target.defaults[keyPath: path])
        let key = SettingKey(name, shape, example: example ?? usual)
        self.key = key
        self.valueName = valueName
        self.help = help
        self.allowed = allowed
        let shown = shape == .flag ? "" : usual.trimmingCharacters(in: ["[", "]"])
        let facts = [allowed, shown.isEmpty ? "" : "default: \(shown)"].filter { !$0.isEmpty }
        fullHelp = facts.isEmpty ? help : "\(help) (\(facts.joined(separator: "; ")))"
        self.isLive = isLive
        self.read = { settings, target in
            if let value = try read(settings, key) { target[keyPath: path] = value }
        }
        text = { show($0[keyPath: path]) }
        differs = { $0[keyPath: path] != $1[keyPath: path] }
    }
}

// MARK: - Kinds of settings

extension Setting {
    package static func text(
        _ name: String,
        _ path: Path<String>,
        valueName: String,
        wanted: String,
        isAllowed: @escaping @Sendable (String) -> Bool,
        help: () -> String
    ) -> Setting {
        Setting(
            name,
            path,
            valueName: valueName,
            isLive: false,
            help: help(),
            show: { $0.isEmpty ? "\"\"" : $0 },
            read: { settings, key in
                guard let text = try settings.text(key) else { return nil }
                guard isAllowed(text) else { throw key.refusal(text, wanted) }
                return text
            }
        )
    }

    package static func optional(
        _ key: SettingKey,
        _ path: Path<String?>,
        valueName: String,
        help: () -> String
    ) -> Setting {
        let show: @Sendable (String?) -> String = { $0 ?? "" }
        let (name, help) = (key.name, help())
        return Setting(name, path, example: key.example, valueName: valueName, isLive: false, help: help, show: show) {
            try $0.text($1)
        }
    }

    /// An address to listen on.
    package static func address(_ name: String, _ path: Path<String>, help: () -> String) -> Setting {
        let read: @Sendable (Settings, SettingKey) throws -> String? = { settings, key in
            guard let text = try settings.text(key) else { return nil }
            let host = HostPort.unbracketed(text)
            // With a port behind it, it must still be a host.
            guard HostPort("\(HostPort(host: host, port: 1))")?.host == host else {
                throw key.refusal(text, "an address or a name of this machine without a port, like 127.0.0.1 or ::1")
            }
            return host
        }
        return Setting(name, path, valueName: "address", isLive: false, help: help(), show: { $0 }, read: read)
    }

    package static func port(_ name: String, _ path: Path<Int>, help: () -> String) -> Setting {
        integer(name, path, in: 0...65_535, valueName: "port", isLive: false, help: help(), from: { $0 }, to: { $0 })
    }

    /// `unit` is the multiple of the value that the setting counts: 1 << 20 for MiB.
    package static func number(
        _ name: String,
        _ path: Path<Int>,
        in range: ClosedRange<Int>,
        unit: Int = 1,
        valueName: String = "number",
        isLive: Bool = false,
        help: () -> String
    ) -> Setting {
        integer(
            name,
            path,
            in: range,
            valueName: valueName,
            isLive: isLive,
            help: help(),
            from: { $0 / unit },
            to: { $0 * unit }
        )
    }

    package static func days(
        _ name: String,
        _ path: Path<Duration>,
        in range: ClosedRange<Int>,
        isLive: Bool = false,
        help: () -> String
    ) -> Setting {
        integer(
            name,
            path,
            in: range,
            // As an example, 0 would show no days.
            example: Target.defaults[keyPath: path] == .zero ? "30" : nil,
            valueName: "days",
            isLive: isLive,
            help: help(),
            from: { Int($0.components.seconds / 86_400) },
            to: { .seconds($0 * 86_400) }
        )
    }

    private static func integer<Value: Equatable & Sendable>(
        _ name: String,
        _ path: Path<Value>,
        in range: ClosedRange<Int>,
        example: String? = nil,
        valueName: String,
        isLive: Bool,
        help: String,
        from: @escaping @Sendable (Value) -> Int,
        to: @escaping @Sendable (Int) -> Value
    ) -> Setting {
        Setting(
            name,
            path,
            shape: .number,
            example: example,
            valueName: valueName,
            allowed: range == 0...65_535 ? "" : "\(range.lowerBound) to \(range.upperBound)",
            isLive: isLive,
            help: help,
            show: { "\(from($0))" },
            read: { try $0.number($1, in: range).map(to) }
        )
    }

    /// A time that destroys something when it is over has `needsUnit`: 7 may be meant as days.
    package static func time(
        _ name: String,
        _ path: Path<Duration>,
        in range: ClosedRange<Duration>,
        needsUnit: Bool = false,
        isLive: Bool = false,
        help: () -> String
    ) -> Setting {
        let allowed = "\(DurationText.write(range.lowerBound)) to \(DurationText.write(range.upperBound))"
        return Setting(
            name,
            path,
            valueName: "time",
            allowed: allowed,
            isLive: isLive,
            help: help(),
            show: { DurationText.write($0) },
            read: { settings, key in
                guard let text = try settings.text(key) else { return nil }
                let duration = needsUnit ? DurationText.readWithUnit(text) : DurationText.read(text)
                guard let duration, range.contains(duration) else {
                    throw key.refusal(
                        text,
                        "a time from \(allowed)\(needsUnit ? ", with its unit," : ",") like \(key.example)"
                    )
                }
                return duration
            }
        )
    }

    package static func choice<Value: RawRepresentable & CaseIterable & Equatable & Sendable>(
        _ name: String,
        _ path: Path<Value>,
        valueName: String,
        isLive: Bool = false,
        help: () -> String
    ) -> Setting where Value.RawValue == String {
        let words = Value.allCases.map(\.rawValue)
        return Setting(
            name,
            path,
            valueName: valueName,
            allowed: words.joined(separator: ", "),
            isLive: isLive,
            help: help(),
            show: { $0.rawValue },
            read: { settings, key in
                guard let text = try settings.text(key) else { return nil }
                guard let value = Value(rawValue: text) else {
                    throw key.refusal(text, words.joined(separator: " or "))
                }
                return value
            }
        )
    }

    package static func flag(_ name: String, _ path: Path<Bool>, isLive: Bool = false, help: () -> String) -> Setting {
        Setting(
            name,
            path,
            shape: .flag,
            valueName: "",
            isLive: isLive,
            help: help(),
            show: { "\($0)" },
            read: { try $0.flag($1) }
        )
    }

    /// `make` makes the value; it throws a ``RefusedItem`` that is not allowed.
    package static func list<Value: Equatable & Sendable>(
        _ name: String,
        _ path: Path<Value>,
        example: String,
        valueName: String,
        wanted: String,
        isLive: Bool = false,
        show: @escaping @Sendable (Value) -> [String],
        make: @escaping @Sendable ([String]) throws -> Value,
        help: () -> String
    ) -> Setting {
        Setting(
            name,
            path,
            shape: .texts,
            example: "[\(example)]",
            valueName: valueName,
            isLive: isLive,
            help: help(),
            show: { "[\(show($0).joined(separator: ", "))]" },
            read: { settings, key in
                guard let texts = try settings.texts(key) else { return nil }
                do {
                    return try make(texts)
                } catch let item as RefusedItem {
                    throw key.refusal(item.text, wanted)
                }
            }
        )
    }

    /// Networks and single addresses.
    package static func networks(_ name: String, _ path: Path<[AddressRange]>, help: () -> String) -> Setting {
        list(
            name,
            path,
            example: "10.0.0.0/8",
            valueName: "network",
            wanted: "a network or an address, like 10.0.0.0/8, fd00::/8 or 192.0.2.7",
            show: { $0.map(\.description) },
            make: { texts in
                try texts.map { text in
                    guard let range = AddressRange(text) else { throw RefusedItem(text: text) }
                    return range
                }
            },
            help: help
        )
    }
}

/// The item of a list that is not allowed.
package struct RefusedItem: Error {
    package let text: String

    package init(text: String) {
        self.text = text
    }
}

// MARK: - Groups

/// A table of settings that stand together in the help and in the manual.
package protocol SettingGroup {
    associatedtype Target: SettingTarget
    static var title: String { get }
    static var rows: [Setting<Target>] { get }
}
