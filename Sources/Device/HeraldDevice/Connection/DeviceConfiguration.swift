public import HeraldModel

/// The server, identity and apps of a ``DeviceClient``.
public struct DeviceConfiguration: Sendable {
    /// The service's host name or address.
    ///
    /// Its certificate must name it, or the ``serverName``.
    ///
    /// A name that contains `sandbox` or `development` selects the sandbox environment.
    public var host: String
    /// The service's device port; 5223 by default.
    public var port: Int
    /// The name in the TLS handshake, which the service's certificate must have; nil for the host.
    public var serverName: String?
    /// The folder of an activated device.
    ///
    /// Its addresses and authorities replace ``host``, ``port`` and ``authorities``, and the client keeps there what the
    /// service announces.
    public var folder: DeviceFolder?
    /// The environment in which the device names the service of its folder.
    public var environment = PushEnvironment.production
    /// The device's identity.
    public var credential: DeviceCredential
    /// The authorities trusted to sign the service's certificate, PEM; nil for the system's.
    ///
    /// The service's certificate is always verified, by name and by chain.
    public var authorities: [UInt8]?
    /// The apps to register on the first connect; each gets a device token.
    public var apps: [DeviceApp]
    /// The keep-alive interval; the service may demand a shorter one.
    public var keepAlive: Duration = .seconds(300)
    /// Timeout of a connection test (PINGREQ).
    public var answerTimeout: Duration = .seconds(20)
    /// Timeout of connecting: TCP, TLS and MQTT together.
    public var connectTimeout: Duration = .seconds(20)
    /// The longest packet that is accepted, in bytes: the largest payload plus its properties.
    public var maximumPacketBytes = 16_384
    /// The most unacknowledged notifications in flight.
    public var receiveMaximum: UInt16 = 16
    /// Limits on reconnecting.
    public var reconnection = ReconnectionLimits()

    /// Makes a configuration with the default limits.
    public init(host: String, port: Int, credential: DeviceCredential, authorities: [UInt8]? = nil, apps: [Topic] = [])
    {
        self.host = host
        self.port = port
        self.credential = credential
        self.authorities = authorities
        self.apps = apps.map { DeviceApp(topic: $0) }
    }
}
