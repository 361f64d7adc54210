public import HeraldModel

/// Which service a device hangs on, as whom, and for which apps.
public struct DeviceConfiguration: Sendable {
    /// The service's host name or address; its certificate must name it, or the ``serverName``.
    ///
    /// A name with `sandbox` or `development` in it leads to the sandbox environment.
    public var host: String
    /// The service's port for devices: 5223 unless configured otherwise.
    public var port: Int
    /// The name that is asked for, and that the service's certificate must have; nil for the host.
    public var serverName: String?
    /// Who the device is.
    public var credential: DeviceCredential
    /// The authorities that may vouch for the service, PEM; nil for those of the system.
    ///
    /// The service's certificate is always verified, by name and by chain.
    public var authorities: [UInt8]?
    /// The apps that are installed from the start: each is registered, and gets a device token.
    public var apps: [DeviceApp]
    /// How long the connection may be silent before it is tested; the service may ask for less.
    public var keepAlive: Duration = .seconds(300)
    /// How long a test of the connection may stay unanswered before the connection is given up.
    public var answerTimeout: Duration = .seconds(20)
    /// How long connecting may take: TCP, TLS and MQTT together.
    public var connectTimeout: Duration = .seconds(20)
    /// The longest packet that is taken, in bytes: the largest payload with room for its properties.
    public var maximumPacketBytes = 16_384
    /// How many notifications the service may send before the first is acknowledged.
    public var receiveMaximum: UInt16 = 16
    /// How often it may connect.
    public var reconnection = ReconnectionLimits()

    /// Makes a configuration with the default limits.
    public init(host: String, port: Int, credential: DeviceCredential, authorities: [UInt8]? = nil, apps: [Topic] = [])
    {
        self.host = host
        serverName = nil
        self.port = port
        self.credential = credential
        self.authorities = authorities
        self.apps = apps.map { DeviceApp(topic: $0) }
    }
}
