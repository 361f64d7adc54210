package import HeraldMailbox
import HeraldModel

extension AppRecord: LogRecord {
    package static var kind: StaticString { "app" }

    /// How an app came by its name, as the record has it.
    private enum OriginCode {
        static let certificate: UInt8 = 0
        static let device: UInt8 = 1
        static let team: UInt8 = 2
    }

    package init(fields: inout RecordReader) throws(RecordError) {
        let number = AppNumber(try fields.integer())
        let environment = try fields.valid(PushEnvironment(logCode: fields.integer()))
        let created = try fields.time()
        let topic = try fields.valid(Topic(fields.text()))
        let origin: AppOrigin?
        switch try fields.integer(UInt8.self) {
        case OriginCode.certificate: origin = nil
        case OriginCode.device: origin = .device(DeviceNumber(try fields.integer()))
        case OriginCode.team: origin = .team(try fields.text())
        default: throw fields.damaged
        }
        self.init(app: App(topic: topic, environment: environment), number: number, origin: origin, created: created)
    }

    package func write(to fields: inout RecordWriter) {
        fields.integer(number.value)
        fields.integer(app.environment.logCode)
        fields.time(created)
        fields.text(app.topic.name)
        switch origin {
        case nil: fields.integer(OriginCode.certificate)
        case .device(let device):
            fields.integer(OriginCode.device)
            fields.integer(device.value)
        case .team(let team):
            fields.integer(OriginCode.team)
            fields.text(team)
        }
    }
}

extension PushEnvironment {
    /// The environment's number in records; part of their format.
    var logCode: UInt8 {
        switch self {
        case .production: 0
        case .sandbox: 1
        }
    }

    init?(logCode: UInt8) {
        guard let environment = PushEnvironment.allCases.first(where: { $0.logCode == logCode }) else { return nil }
        self = environment
    }
}
