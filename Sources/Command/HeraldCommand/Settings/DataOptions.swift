import ArgumentParser
import HeraldService

/// The options of every command that works on a data folder.
struct DataOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The service's data folder. (default: ./herald-data)", valueName: "folder"))
    var data: String?

    @Option(help: ArgumentHelp("The service's configuration file, which may name the folder.", valueName: "file"))
    var config: String?

    @Flag(help: "Print JSON.")
    var json = false

    /// The folder's path, by the command line, `HERALD_DATA`, the configuration file, or the default.
    /// - Throws: ``CommandError/Code/configuration``.
    func path() throws -> String {
        let settings = try Settings(file: config)
        let path = try data ?? settings.text(.data) ?? DataFolder.defaultPath
        guard !path.isEmpty else {
            throw CommandError(.configuration, "the data folder's path is empty: name it with --data")
        }
        return path
    }

    /// The folder itself.
    /// - Throws: ``CommandError`` if it is not a folder of Herald's.
    func folder(mayCreate: Bool = false) throws -> DataFolder {
        try DataFolder.open(path(), mayCreate: mayCreate)
    }
}
