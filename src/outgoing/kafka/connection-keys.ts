/** The keys of a configuration by which brokers are reached and topics named: of the section `kafka`, and of an outbox to Kafka. */
import Type, { type Static, type TString } from 'typebox'
import {
  type Fixed,
  file,
  type KeyWords,
  list,
  oneOf,
  section,
  text,
  yesOrNo,
} from '../../core/settings/kinds.ts'
import { DEFAULT_CLIENT_ID, isServer, SASL_MECHANISMS, SECURITY_PROTOCOLS } from './connection.ts'
import { isTopicName } from './record.ts'

export const TOPIC_FORM = "1 to 249 letters, digits, '.', '_' or '-'"

export const topicKey = (description: string): TString =>
  text(description, { allowed: TOPIC_FORM, is: isTopicName })

/** What Kafka and headers carry as a name of somebody; Kafka itself allows any text. */
export const nameKey = (description: string, words: KeyWords<string> = {}): TString =>
  text(description, {
    pattern: /^[^\p{Cc}]{1,255}$/u,
    allowed: '1 to 255 characters, no control characters',
    ...words,
  })

const words = (description: string, more: KeyWords<string> = {}) =>
  Type.Optional(text(description, { pattern: /./s, allowed: 'a text, not an empty one', ...more }))
const secret = (description: string) => words(description, { secret: true })
const path = (description: string) => Type.Optional(file(description))

export const CONNECTION_KEYS = {
  servers: Type.Optional(
    list(
      'Brokers to begin with.',
      text('A broker.', { allowed: "'HOST:PORT' with a port from 1 to 65535", is: isServer }),
      { allowed: "a list of 'HOST:PORT'" },
    ),
  ),
  client_id: Type.Optional(
    nameKey('What brokers know this client by.', { otherwise: `\`${DEFAULT_CLIENT_ID}\`` }),
  ),
  security_protocol: Type.Optional(
    oneOf('Whether connections are encrypted, and authenticated.', SECURITY_PROTOCOLS, {
      otherwise: '`PLAINTEXT`',
    }),
  ),
  ssl_cafile: path('Certificates in PEM that those of brokers must go back to.'),
  ssl_certfile: path('Certificate of this client in PEM.'),
  ssl_keyfile: path('Key of that certificate in PEM.'),
  ssl_password: secret('Password of the key.'),
  ssl_password_file: path('File with the password of the key.'),
  ssl_check_hostname: Type.Optional(
    yesOrNo("Whether a broker's certificate must name its host.", { otherwise: '`true`' }),
  ),
  sasl_mechanism: Type.Optional(oneOf('How this client proves who it is.', SASL_MECHANISMS)),
  sasl_username: words('Name of the user.'),
  sasl_password: secret('Password of the user.'),
  sasl_password_file: path('File with the password of the user.'),
  sasl_token: secret("Token for 'OAUTHBEARER'."),
  sasl_token_file: path('File with the token.'),
}

const ConnectionSchema = section('How brokers are reached.', CONNECTION_KEYS)

/** How brokers are reached, as it is given. */
export type ConnectionOptions = Fixed<Static<typeof ConnectionSchema>>
