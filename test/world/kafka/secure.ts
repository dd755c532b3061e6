/** A broker with TLS, SCRAM and access control, where everything is forbidden that was not granted. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import {
  AclOperations,
  AclPermissionTypes,
  Admin,
  ResourcePatternTypes,
  ResourceTypes,
} from '@platformatic/kafka'
import { freePort, type KafkaBroker, startBroker } from './broker.ts'

const run = promisify(execFile)

export interface Grant {
  readonly resource: 'topic' | 'group' | 'cluster'
  readonly name: string
  /** All names that begin so. */
  readonly prefixed?: boolean
  readonly operation: 'read' | 'write' | 'describe' | 'describe_configs' | 'idempotent_write'
}

export interface SecureBroker extends KafkaBroker {
  /** `host:port` of the listener with TLS and SCRAM-SHA-512. The plain one is for the tests themselves and may do everything. */
  readonly secured: string
  readonly username: string
  readonly password: string
  /** The certificate of the authority, as text and as a file. */
  readonly ca: string
  readonly caFile: string
  /** Allows the user something. */
  grant(...grants: readonly Grant[]): Promise<void>
  /** Takes back all that was granted on the resource. */
  revoke(resource: Grant['resource'], name: string): Promise<void>
}

const TYPES = { topic: ResourceTypes.TOPIC, group: ResourceTypes.GROUP, cluster: ResourceTypes.CLUSTER }
const OPERATIONS = {
  read: AclOperations.READ,
  write: AclOperations.WRITE,
  describe: AclOperations.DESCRIBE,
  describe_configs: AclOperations.DESCRIBE_CONFIGS,
  idempotent_write: AclOperations.IDEMPOTENT_WRITE,
}

/** Starts one, with one user who may do nothing yet. */
export async function startSecureBroker(): Promise<SecureBroker> {
  const [username, password] = ['bartleby', 'a-secret-for-tests']
  const keys = await mkdtemp(join(tmpdir(), 'bartleby-kafka-keys-'))
  try {
    const caFile = join(keys, 'ca.pem')
    const keyFile = await makeKeys(keys, caFile)
    const [port, controllerPort, securedPort] = [await freePort(), await freePort(), await freePort()]
    const broker = await startBroker({
      format: ['--add-scram', `SCRAM-SHA-512=[name=${username},password=${password}]`],
      properties: {
        listeners: [
          `PLAINTEXT://127.0.0.1:${port}`,
          `CONTROLLER://127.0.0.1:${controllerPort}`,
          `SECURED://127.0.0.1:${securedPort}`,
        ].join(','),
        'advertised.listeners': `PLAINTEXT://127.0.0.1:${port},SECURED://127.0.0.1:${securedPort}`,
        'controller.quorum.voters': `1@127.0.0.1:${controllerPort}`,
        'listener.security.protocol.map': 'PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL',
        'sasl.enabled.mechanisms': 'SCRAM-SHA-512',
        'listener.name.secured.scram-sha-512.sasl.jaas.config':
          'org.apache.kafka.common.security.scram.ScramLoginModule required;',
        'ssl.keystore.type': 'PEM',
        'ssl.keystore.location': keyFile,
        'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
        // Whoever comes through the plain listener.
        'super.users': 'User:ANONYMOUS',
      },
    })
    const admin = new Admin({
      clientId: 'bartleby-tests',
      bootstrapBrokers: [`127.0.0.1:${port}`],
      retries: 5,
      retryDelay: 200,
    })
    const principal = `User:${username}`
    return {
      ...broker,
      bootstrap: `127.0.0.1:${port}`,
      secured: `127.0.0.1:${securedPort}`,
      username,
      password,
      ca: await readFile(caFile, 'utf8'),
      caFile,
      async grant(...grants) {
        await admin.createAcls({
          creations: grants.map(({ resource, name, prefixed = false, operation }) => ({
            resourceType: TYPES[resource],
            resourceName: name,
            resourcePatternType: prefixed ? ResourcePatternTypes.PREFIXED : ResourcePatternTypes.LITERAL,
            principal,
            host: '*',
            operation: OPERATIONS[operation],
            permissionType: AclPermissionTypes.ALLOW,
          })),
        })
      },
      async revoke(resource, name) {
        await admin.deleteAcls({
          filters: [
            {
              resourceType: TYPES[resource],
              resourceName: name,
              resourcePatternType: ResourcePatternTypes.ANY,
              principal,
              host: null,
              operation: AclOperations.ANY,
              permissionType: AclPermissionTypes.ANY,
            },
          ],
        })
      },
      async dispose() {
        await admin.close()
        await broker.dispose()
        await rm(keys, { recursive: true, force: true })
      },
    }
  } catch (error) {
    await rm(keys, { recursive: true, force: true })
    throw error
  }
}

/** An authority and a certificate of it for the loopback address; gives the file that the broker reads: key and chain. */
async function makeKeys(folder: string, caFile: string): Promise<string> {
  const at = (name: string) => join(folder, name)
  const openssl = (...args: readonly string[]) => run('openssl', args)
  const newKey = ['-newkey', 'rsa:2048', '-nodes']
  await openssl(
    'req',
    '-x509',
    ...newKey,
    '-keyout',
    at('ca.key'),
    '-out',
    caFile,
    '-subj',
    '/CN=ca',
    '-days',
    '2',
  )
  await openssl(
    'req',
    ...newKey,
    '-keyout',
    at('broker.key'),
    '-out',
    at('broker.csr'),
    '-subj',
    '/CN=broker',
  )
  await writeFile(at('names'), 'subjectAltName=IP:127.0.0.1,DNS:localhost\n')
  const signing = [
    '-CA',
    caFile,
    '-CAkey',
    at('ca.key'),
    '-CAcreateserial',
    '-days',
    '2',
    '-extfile',
    at('names'),
  ]
  await openssl('x509', '-req', '-in', at('broker.csr'), ...signing, '-out', at('broker.pem'))
  const parts = [at('broker.key'), at('broker.pem'), caFile]
  const pem = (await Promise.all(parts.map((part) => readFile(part, 'utf8')))).join('')
  await writeFile(at('keystore.pem'), pem)
  return at('keystore.pem')
}
