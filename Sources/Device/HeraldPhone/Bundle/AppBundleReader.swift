import Foundation
import HeraldJSON

extension AppBundle {
    /// Reads a bundle, or a project, from a folder.
    ///
    /// If the folder itself is not a bundle, the folders below are searched, as in a project.
    /// - Parameters:
    ///   - folder: The path of the folder.
    ///   - container: The app's container, with more sounds in `Library/Sounds`.
    ///   - limits: Limits of what is read.
    /// - Throws: ``BundleError`` with the name of the file.
    public init(folder: String, container: String? = nil, limits: BundleLimits = BundleLimits()) throws {
        var reader = AppBundleReader(limits: limits)
        try reader.read(folder)
        if let container { reader.readContainer(container) }
        self = reader.bundle
    }
}

/// Reads the files of a bundle or project.
private struct AppBundleReader {
    let limits: BundleLimits
    var bundle = AppBundle()
    private var room: Int
    private var base: [TextKey: LocalizedText] = [:]
    private var hasDevelopmentLanguage = false

    init(limits: BundleLimits) {
        self.limits = limits
        room = limits.entries
    }

    mutating func read(_ folder: String) throws {
        let names = try names(in: folder)
        if names.contains(where: Self.tellsBundle) {
            try readResources(names, in: folder)
        } else {
            try search(names, in: folder, depth: 1)
        }
        mergeBase()
    }

    /// Reads the sounds of a container, except those that cannot be read: programs of the app may write anything there.
    mutating func readContainer(_ container: String) {
        let folder = container + "/Library/Sounds"
        guard BundleFile.isFolder(folder), let names = try? names(in: folder) else { return }
        for name in names where Self.isSound(name) {
            bundle.containerSounds[name] = try? sound(folder + "/" + name)
        }
    }

    private static func tellsBundle(_ name: String) -> Bool {
        name == "Info.plist" || name.hasSuffix(".lproj") || name == "Localizable.xcstrings"
    }

    /// Lists a folder, and counts its entries.
    private mutating func names(in folder: String) throws -> [String] {
        let names = try BundleFile.names(in: folder)
        room -= names.count
        guard room >= 0 else {
            throw BundleError(folder, "has more than \(limits.entries) files in it: name the folder of the app itself")
        }
        return names
    }

    /// Searches a project for the parts of a bundle, except in folders of dependencies and build products.
    private mutating func search(_ names: [String], in folder: String, depth: Int) throws {
        guard depth <= limits.depth else { return }
        let foreign = ["Pods", "Carthage", "DerivedData", "build", "node_modules"]
        for name in names where !foreign.contains(name) && BundleFile.isFolder(folder + "/" + name) {
            let below = folder + "/" + name
            let namesBelow = try self.names(in: below)
            if namesBelow.contains(where: Self.tellsBundle) { try readResources(namesBelow, in: below) }
            if !name.hasSuffix(".lproj") { try search(namesBelow, in: below, depth: depth + 1) }
        }
    }

    private mutating func readResources(_ names: [String], in folder: String) throws {
        for name in names {
            let path = folder + "/" + name
            switch name {
            case "Info.plist": try readInformation(path)
            case "NotificationCategories.json":
                let bytes = try BundleFile.read(path, limit: limits.fileBytes)
                bundle.categories.merge(try NotificationCategory.read(bytes, file: path, limits: limits)) { $1 }
            case "Localizable.xcstrings": try readCatalog(path)
            default:
                if name.hasSuffix(".lproj") {
                    try readLanguage(String(name.dropLast(6)), path)
                } else if Self.isSound(name) {
                    bundle.sounds[name] = try sound(path)
                } else if Self.isImage(name) {
                    bundle.images.insert(name)
                } else if name.hasSuffix(".xcassets") {
                    let images = try self.names(in: path).filter { $0.hasSuffix(".imageset") }
                    bundle.images.formUnion(images.map { String($0.dropLast(9)) })
                }
            }
        }
    }

    private mutating func readInformation(_ path: String) throws {
        let bytes = try BundleFile.read(path, limit: limits.fileBytes)
        let members = try PropertyListFile.members(bytes, file: path, limits: limits)
        /// In a project, `$(NAME)` is a placeholder of the build.
        func text(_ key: String) -> String? {
            members[key]?.text.flatMap { $0.contains("$(") ? nil : $0 }
        }
        bundle.identifier = text("CFBundleIdentifier") ?? bundle.identifier
        bundle.name = text("CFBundleDisplayName") ?? text("CFBundleName") ?? bundle.name
        if let language = text("CFBundleDevelopmentRegion") {
            bundle.developmentLanguage = language
            hasDevelopmentLanguage = true
        }
        bundle.launchImageFile = text("UILaunchImageFile") ?? bundle.launchImageFile
        let modes = members["UIBackgroundModes"]?.elements ?? []
        if modes.contains(.string("remote-notification")) { bundle.wakesInBackground = true }
    }

    private mutating func readLanguage(_ language: String, _ folder: String) throws {
        var texts: [TextKey: LocalizedText] = [:]
        for name in try names(in: folder) {
            let path = folder + "/" + name
            switch name {
            case "Localizable.strings":
                let bytes = try BundleFile.read(path, limit: limits.fileBytes)
                texts.merge(try strings(bytes, path)) { plural, _ in plural }
            case "Localizable.stringsdict":
                let bytes = try BundleFile.read(path, limit: limits.fileBytes)
                let members = try PropertyListFile.members(bytes, file: path, limits: limits)
                texts.merge(try PluralFile.read(members, file: path, limits: limits)) { $1 }
            default: continue
            }
        }
        if language == "Base" {
            base.merge(texts) { $1 }
        } else {
            bundle.texts[language, default: [:]].merge(texts) { $1 }
        }
    }

    private func strings(_ bytes: [UInt8], _ path: String) throws -> [TextKey: LocalizedText] {
        guard PropertyListFile.isPropertyList(bytes) else {
            return try StringsFile.read(bytes, file: path).mapValues { LocalizedText(format: $0) }
        }
        return try PropertyListFile.members(bytes, file: path, limits: limits)
            .reduce(into: [:]) { texts, member in
                texts[TextKey(member.name)] = member.value.text.map { LocalizedText(format: $0) }
            }
    }

    private mutating func readCatalog(_ path: String) throws {
        let bytes = try BundleFile.read(path, limit: limits.fileBytes)
        let catalog = try StringCatalog.read(bytes, file: path, limits: limits)
        if !hasDevelopmentLanguage { bundle.developmentLanguage = catalog.source }
        bundle.untranslatedKeys.formUnion(catalog.untranslated)
        for (language, texts) in catalog.languages {
            bundle.texts[language, default: [:]].merge(texts) { $1 }
        }
    }

    /// Adds the texts of `Base.lproj` that the development language's own folder lacks.
    private mutating func mergeBase() {
        guard !base.isEmpty else { return }
        let development = bundle.developmentLanguage
        bundle.texts[development, default: [:]].merge(base) { own, _ in own }
    }

    private func sound(_ path: String) throws -> SoundFile {
        SoundFile(prefix: try BundleFile.readPrefix(path, limit: SoundFile.prefixBytes).bytes)
    }

    private static func hasExtension(_ name: String, _ extensions: Set<String>) -> Bool {
        name.lastIndex(of: ".").map { extensions.contains(name[name.index(after: $0)...].lowercased()) } ?? false
    }

    private static func isSound(_ name: String) -> Bool {
        hasExtension(name, ["aiff", "aif", "aifc", "wav", "caf", "mp3", "m4a", "aac", "ogg", "flac"])
    }

    private static func isImage(_ name: String) -> Bool {
        hasExtension(
            name,
            ["png", "jpg", "jpeg", "gif", "heic", "pdf", "svg", "storyboard", "storyboardc", "xib", "nib"]
        )
    }
}
