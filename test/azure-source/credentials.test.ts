/** Who the office is to an account: by a connection string in a file or in the environment, or as `DefaultAzureCredential` finds it. */
import { execFile, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { ACCOUNT, type Azurite, type Certificate, startAzurite, whyNoAzurite } from '../world/azurite.ts'
import { PATIENCE_MS } from '../world/limits.ts'
import { type SpawnedServer, spawnServer } from '../world/server.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const run = promisify(execFile)
const QUEUE = 'hmac-rotation-queue'

function certificateIn(folder: string): Certificate | null {
  const [cert, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')]
  const self = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=127.0.0.1']
  const names = ['-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', key, '-out', cert]
  return spawnSync('openssl', [...self, ...names]).status === 0 ? { cert, key } : null
}

/** Gives tokens as the managed identity of a function does, or refuses to. */
class Identity {
  /** How long its tokens are good for; null: it gives none. */
  seconds: number | null = 3_600
  asked = 0
  readonly #server: Server

  private constructor(server: Server) {
    this.#server = server
  }

  static async open(): Promise<Identity> {
    const server = createServer((request, answer) => {
      identity.asked++
      const { searchParams } = new URL(request.url ?? '', 'http://127.0.0.1')
      const isOurs = request.headers['x-identity-header'] === 'secret'
      if (identity.seconds === null || !isOurs) {
        answer.writeHead(400, { 'content-type': 'application/json' }).end('{"error":"no identity"}')
        return
      }
      const now = Math.floor((performance.timeOrigin + performance.now()) / 1_000)
      const expires = now + identity.seconds
      const resource = searchParams.get('resource') ?? ''
      const token = tokenOf({ aud: resource, iat: now, nbf: now - 5, exp: expires })
      const body = { access_token: token, expires_on: String(expires), resource, token_type: 'Bearer' }
      answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    })
    const identity = new Identity(server)
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    return identity
  }

  /** What a function finds in its environment. `prod`: nobody's tools are asked. */
  get env(): Record<string, string> {
    // It listens.
    const { port } = this.#server.address() as AddressInfo
    return {
      ...{ IDENTITY_ENDPOINT: `http://127.0.0.1:${port}/token`, IDENTITY_HEADER: 'secret' },
      AZURE_TOKEN_CREDENTIALS: 'prod',
    }
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    this.#server.close()
    await once(this.#server, 'close')
  }
}

/** Azurite looks at what a token says, and not at its signature. */
function tokenOf(claims: object): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  const issuer = 'https://sts.windows.net/ab1f708d-50f6-404c-a006-d71b2ac7a606/'
  return `${part({ alg: 'RS256', typ: 'JWT' })}.${part({ iss: issuer, ...claims })}.${part({})}`
}

const folder = await mkdtemp(join(tmpdir(), 'bartleby-azure-identity-'))
const certificate = certificateIn(folder)
const why = whyNoAzurite ?? (certificate === null ? 'openssl made no certificate' : null)
if (why !== null && process.env.CI === 'true') throw new Error(why)

describe.skipIf(why !== null)(`an office${why === null ? '' : ` (${why})`}`, () => {
  let azurite: Azurite
  let identity: Identity
  let server: SpawnedServer | null = null
  let env: Record<string, string>
  beforeAll(async () => {
    azurite = await startAzurite(certificate)
  })
  afterAll(async () => {
    await azurite.stop()
    await rm(folder, { recursive: true })
  })
  beforeEach(async () => {
    identity = await Identity.open()
    env = { ...identity.env, NODE_EXTRA_CA_CERTS: certificate?.cert ?? '' }
  })
  afterEach(async () => {
    await server?.stop()
    server = null
    await identity.close()
  })

  const endpoints = () => ({
    endpoint: `https://127.0.0.1:${azurite.ports.tables}/${ACCOUNT}`,
    queues: { endpoint: `https://127.0.0.1:${azurite.ports.queues}/${ACCOUNT}` },
  })

  async function configured(tables: object): Promise<string> {
    const path = join(folder, `bartleby-${Math.random()}.json`)
    const all = { storageAccountName: ACCOUNT, pollSeconds: 1, ...tables }
    await writeFile(path, JSON.stringify({ engines: { tables: all } }))
    return path
  }

  /** Does something as the engine's side, which has the account's key; in a process of its own, which knows the certificate. */
  async function asEngine(program: string): Promise<string> {
    const libraries = `import { TableClient } from '@azure/data-tables'; import { QueueServiceClient } from '@azure/storage-queue'
      const given = ${JSON.stringify(azurite.connectionString)}
      const dlq = TableClient.fromConnectionString(given, 'engineDlq'), history = TableClient.fromConnectionString(given, 'engineHistory')
      const queue = QueueServiceClient.fromConnectionString(given).getQueueClient('${QUEUE}')`
    const args = ['--input-type=module', '-e', `${libraries}\n${program}`]
    const { stdout } = await run('node_modules/.bin/node', args, {
      cwd: root,
      env: { ...process.env, ...env },
    })
    return stdout.trim()
  }
  const fail = (rowKey: string) =>
    asEngine(`await dlq.createTable(); await history.createTable(); await queue.createIfNotExists()
      await dlq.createEntity({ partitionKey: 'hmac', rowKey: '${rowKey}', Engine: 'hmac', InstanceId: 'i', OriginalQueue: '${QUEUE}', OriginalMessage: '{}', ErrorMessage: 'no', Status: 'Pending', CorrelationId: '${rowKey}' })`)

  const check = async (config: string) => {
    const args = ['bin/bartleby.js', 'azure', 'check', '--config', config]
    const told = run('node_modules/.bin/node', args, { cwd: root, env: { ...process.env, ...env } })
    return told.then(
      ({ stdout }) => ({ code: 0, out: stdout, err: '' }),
      // What `execFile` rejects with.
      (error: { code: number; stdout: string; stderr: string }) => ({
        ...{ code: error.code, out: error.stdout, err: error.stderr },
      }),
    )
  }

  const ask = async (path: string) => {
    const answer = await fetch(`${server?.url}${path}`)
    return JSON.stringify(await answer.json())
  }
  const until = (path: string) => expect.poll(() => ask(path), { timeout: PATIENCE_MS })

  it('finds its connection string in a file, or in the environment', async () => {
    await fail('by-string')
    const file = join(folder, 'connection')
    await writeFile(file, `${azurite.connectionString}\n`)
    expect(await check(await configured({ connectionStringFile: file }))).toMatchObject({ code: 0 })
    const config = await configured({})
    env = { ...env, AZURE_STORAGE_CONNECTION_STRING: azurite.connectionString }
    expect(await check(config)).toMatchObject({ code: 0, err: '' })
    server = await spawnServer({ store: 'sqlite::memory:', config, env })
    await until('/api/dlq').toContain('by-string')
    expect(identity.asked).toBe(0)
  })

  it('is the identity of its surroundings without one: it reads, sends back and writes with tokens', async () => {
    await fail('by-token')
    const config = await configured(endpoints())
    expect(await check(config)).toMatchObject({ code: 0, err: '' })
    expect(identity.asked).toBeGreaterThan(0)
    server = await spawnServer({ store: 'sqlite::memory:', config, env })
    await until('/api/dlq').toContain('by-token')
    const retried = await fetch(`${server.url}/api/dlq/hmac/by-token/retry`, { method: 'POST' })
    expect(retried.status).toBe(200)
    const status = `console.log((await dlq.getEntity('hmac', 'by-token')).Status, (await queue.peekMessages()).peekedMessageItems.length)`
    await expect.poll(() => asEngine(status), { timeout: PATIENCE_MS }).toBe('Resolved 1')
  })

  it('whose tokens run out and are not renewed says so in health, and goes on once they are', async () => {
    await fail('before')
    identity.seconds = 4
    server = await spawnServer({ store: 'sqlite::memory:', config: await configured(endpoints()), env })
    await until('/api/dlq').toContain('before')
    identity.seconds = null
    await until('/api/azure').toMatch(/"troubles":\["azure\.engineDlq: [^"]*(?:Credential|identity|token)/i)
    await until('/health').toContain('the storage account does not answer as it should')
    await fail('after')
    const { code, out } = await check(await configured(endpoints()))
    expect(code).toBe(1)
    expect(out).toContain('✗ table engineDlq: this identity may not: its letters can be read')
    identity.seconds = 3_600
    await until('/api/dlq').toContain('after')
    await until('/api/azure').toContain('"troubles":[]')
  })
})
