/** What an installed package holds and can do. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Office } from '../../src/office.ts'
import { LIBRARY_VERSION } from '../../src/outgoing/kafka/library.ts'
import { examplesFolder, prepareExamples, skipWithoutLibraries } from '../outbox/examples-package.ts'
import { codeBlocks } from '../outbox/guide.ts'
import { Receiver } from '../world/receiver.ts'
import { barePostgres, freshSqlite } from '../world/stores.ts'
import { codeWith, type DocumentedCode, documentedCode } from './documented.ts'
import { installPackage, link, type Project, root, run } from './installed.ts'

let project: Project
let blocks: readonly DocumentedCode[]

beforeAll(async () => {
  project = await installPackage()
  blocks = documentedCode(project.installed)
})

afterAll(() => rm(project.everything, { recursive: true, force: true }))

/** Runs a module of the project as plain Node does; types are stripped from the module, never from the package. */
async function runModule(
  name: string,
  code: string,
  env?: Readonly<Record<string, string>>,
): Promise<string> {
  writeFileSync(join(project.folder, name), code)
  return (await run(project.folder, [process.execPath, name], env)).trim()
}

/** Every name under which a part of the package is imported. */
const entries = () => Object.keys(project.manifest.exports).map((key) => key.replace('.', 'bartleby'))

describe('the package', () => {
  it('holds the build and what users read, but no sources, tests or tools', () => {
    expect(readdirSync(project.installed).toSorted()).toEqual(
      [
        'CHANGELOG.md',
        'LICENSE',
        'README.md',
        'bin',
        'console',
        'dist',
        'docs',
        'package.json',
        'profiles',
      ].toSorted(),
    )
    expect(readdirSync(join(project.installed, 'console'))).toEqual(['dist'])
    const built = readdirSync(join(project.installed, 'dist'), { recursive: true, encoding: 'utf8' })
    expect(built.filter((name) => /\.test\.|-double\.|stub-/.test(name))).toEqual([])
  })

  it('spares its users a Node of its own', () => {
    expect(Object.keys(project.manifest.dependencies)).not.toContain('node')
  })

  it('leaves the client library of Kafka to those who use Kafka, and tells them how to install it', async () => {
    expect(Object.keys(project.manifest.dependencies)).not.toContain('@platformatic/kafka')
    const sentence = `Kafka cannot be used; its client library is not installed, install it with: npm install @platformatic/kafka@${LIBRARY_VERSION}`
    const thrownBy = (call: string): Promise<string> =>
      runModule(
        'without-kafka.js',
        `import { Office } from 'bartleby'
         import { kafkaTransport } from 'bartleby/outbox'
         try { ${call} } catch (error) { console.log(error.code, error.message) }`,
      )
    const section = {
      enabled: true,
      servers: ['a:1'],
      token_hashes: ['0'.repeat(64)],
      services: { s: ['d', 'r'] },
    }
    const settings = JSON.stringify({ store: 'sqlite::memory:', kafka: section })
    expect(await thrownBy(`await Office.open(${settings})`)).toBe(`kafka_library_missing ${sentence}`)
    expect(await thrownBy(`kafkaTransport({ topic: 't', servers: ['a:1'] })`)).toBe(
      `kafka_library_missing ${sentence}`,
    )
    writeFileSync(join(project.folder, 'kafka.yaml'), JSON.stringify({ kafka: section }))
    const command = join(project.installed, project.manifest.bin.bartleby)
    const serving = run(project.folder, [
      ...([process.execPath, command, 'serve', '--port', '0'] as const),
      ...['--store', 'sqlite::memory:', '--config', 'kafka.yaml'],
    ])
    await expect(serving).rejects.toThrow(sentence)
  })

  it('gives every entry that it declares', async () => {
    expect(entries()).toEqual(['bartleby', 'bartleby/client', 'bartleby/outbox'])
    const names = await runModule(
      'entries.js',
      `for (const entry of ${JSON.stringify(entries())}) console.log(Object.keys(await import(entry)).join())`,
    )
    expect(names.split('\n').map((line) => line.split(','))).toEqual([
      expect.arrayContaining(['Office', 'PermanentError', 'BartlebyError']),
      expect.arrayContaining(['QueueClient', 'LetterClient', 'HistoryClient', 'RedriveClient']),
      expect.arrayContaining(['createOutbox', 'createDispatcher', 'createInbox', 'createKey', 'pgAdapter']),
    ])
  })

  it('brings the console, which its server serves', async () => {
    const command = join(project.installed, project.manifest.bin.bartleby)
    const server = spawn(process.execPath, [command, 'serve', '--port', '0', '--store', 'sqlite::memory:'])
    try {
      const [line] = await once(server.stdout, 'data')
      const url = /listening on (\S+)/.exec(String(line))?.[1]
      const page = await (await fetch(`${url}/letters`, { headers: { accept: 'text/html' } })).text()
      const script = /src="(\/assets\/[^"]+\.js)"/.exec(page)?.[1]
      expect((await fetch(`${url}${script}`)).headers.get('content-type')).toContain('javascript')
    } finally {
      server.kill()
      await once(server, 'exit')
    }
  })

  it('repairs letters, in a process whose code it brings', async () => {
    const code = `import { Office } from 'bartleby'
      const office = await Office.open({ store: 'sqlite::memory:' })
      const settings = { leaseTimeout: '1h', expireTimeout: '24h', requestedPartitions: 1 }
      await office.queues.create({ ...settings, queueName: 'dead' })
      await office.queues.create({ ...settings, queueName: 'orders', deadQueue: 'dead' })
      await office.queues.produce({ queueName: 'orders', items: [{ payload: '{"a":1}' }] })
      const { partition, items } = await office.queues.lease({ queueName: 'orders', clientId: 'me', batchSize: 1, requestTimeout: '10s' })
      await office.queues.retry({ queueName: 'orders', partition, items: [{ id: items[0].id, dead: true }] })
      const terms = { rate: null, canary: null, stopRule: null, order: 'key' }
      const recipe = { patch: [{ op: 'add', path: '/b', value: 2 }], mapping: null, headers: null, version: '1-0' }
      const { sample } = await office.redrives.plan({
        action: 'retry', queue: null, selection: { by: 'filter', filter: {} }, terms, recipe, reason: null, actor: 'me',
      })
      console.log(Buffer.from(sample[0].outgoing.payload).toString())
      await office.close()`
    expect(
      (await run(project.folder, [process.execPath, '--input-type=module', '--eval', code])).trim(),
    ).toBe('{"a":1,"b":2}')
  })

  it('brings the command, which tells its version and its use', async () => {
    const { bin, version } = project.manifest
    const command = join(project.installed, bin.bartleby)
    expect(await run(project.folder, [process.execPath, command, '--help'])).toContain('Usage: bartleby')
    expect((await run(project.folder, [process.execPath, command, '--version'])).trim()).toBe(version)
  })
})

describe('the documentation, with the installed package', () => {
  it('has examples with right types, and declarations that need no types but those of Node', async () => {
    const folder = join(project.folder, 'blocks')
    mkdirSync(folder)
    for (const { name, code } of blocks.filter(({ from }) => from === ''))
      writeFileSync(join(folder, `${name}.ts`), `${code}export {}\n`)
    writeFileSync(
      join(folder, 'entries.ts'),
      entries()
        .map((entry, at) => `export * as entry${at} from '${entry}'`)
        .join('\n'),
    )
    copyFileSync(join(root, 'test/package/given.d.ts'), join(folder, 'given.d.ts'))
    // Types are the choice of the program. Those of `pg` lie where the declarations of the package do not find them.
    link(join(root, 'node_modules/@types/node'), join(project.folder, 'node_modules/@types/node'))
    link(join(root, 'node_modules/@types/pg'), join(folder, 'node_modules/@types/pg'))
    await checkTypes(folder, { skipLibCheck: false })
  })

  it('has whole programs with right types', async (test) => {
    skipWithoutLibraries(test, await prepareExamples())
    const folder = join(project.folder, 'programs')
    mkdirSync(join(folder, 'node_modules'), { recursive: true })
    const theirs = join(examplesFolder, 'node_modules')
    for (const name of readdirSync(theirs)) {
      if (name !== 'bartleby' && !name.startsWith('.'))
        link(join(theirs, name), join(folder, 'node_modules', name))
    }
    link(join(examplesFolder, 'generated'), join(folder, 'generated'))
    for (const { from } of blocks.filter((block) => block.from !== ''))
      copyFileSync(join(root, from), join(folder, from.split('/').at(-1) ?? from))
    // Declarations of the libraries that they use do not all stand up to a check.
    await checkTypes(folder, { skipLibCheck: true })
  })

  it('runs its library example, and runs it again', async () => {
    const code = `${codeWith(blocks, 'office.queues.complete')}
      const again = await Office.open({ store: 'sqlite:./data/app.db' })
      console.log((await again.queues.stats('orders')).partitions.map(({ total }) => total).join())
      await again.close()`
    expect(await runModule('library.ts', code)).toBe('0')
    expect(await runModule('library.ts', code)).toBe('0')
  })

  it.each(['README-md', 'docs-guide-md'])('runs the engine of %s as it stands', async (page) => {
    const store = `sqlite:${join(project.folder, `engine-${page}.db`)}`
    const example = codeWith(
      blocks.filter(({ name }) => name.startsWith(page)),
      'office.engine(',
    )
    writeFileSync(join(project.folder, `engine-${page}.ts`), example.replace(/sqlite:[^']*/, store))
    const program = spawn(process.execPath, [`engine-${page}.ts`], { cwd: project.folder, stdio: 'inherit' })
    const office = await Office.open({ store })
    try {
      // The queue is made by the engine.
      await expect.poll(async () => (await office.queues.list()).length).toBe(1)
      await office.queues.produce({ queueName: 'hmac', items: [{ payload: '{"instanceId":"tenant-7"}' }] })
      await expect
        .poll(async () => (await office.history.list({ engine: 'hmac' })).items)
        .toMatchObject([{ operation: 'rotate', status: 'Succeeded' }])
      expect(program.exitCode).toBeNull()
    } finally {
      await office.close()
      program.kill()
      if (program.exitCode === null) await once(program, 'exit')
    }
  })

  it('runs the outbox of the README', async () => {
    const [store, billing] = await Promise.all([barePostgres(), Receiver.start((response) => response.end())])
    const code = codeWith(blocks, 'httpTransport', 'outbox.add')
      .replace(/postgres:[^']*/, store.url)
      .replace(/https:[^']*/, billing.hook())
    writeFileSync(join(project.folder, 'outbox.ts'), code)
    const program = spawn(process.execPath, ['outbox.ts'], { cwd: project.folder, stdio: 'inherit' })
    try {
      await Promise.race([billing.gets(1), once(program, 'exit')])
      expect(billing.requests).toMatchObject([
        { headers: { 'x-event-type': 'order.placed', 'x-tenant-id': 'acme' } },
      ])
    } finally {
      program.kill()
      await Promise.all([once(program, 'exit'), billing.close(), store.dispose()])
    }
  })

  it.each([
    ['pg', barePostgres],
    ['sqlite', freshSqlite],
  ])('runs the outbox example with %s', async (name, fresh) => {
    const store = await fresh()
    try {
      copyFileSync(join(examplesFolder, `${name}.ts`), join(project.folder, `outbox-${name}.ts`))
      const printed = await run(project.folder, [process.execPath, `outbox-${name}.ts`], {
        DATABASE_URL: store.url,
      })
      expect(printed).toBe(codeBlocks.find(({ language }) => language === 'text')?.code)
    } finally {
      await store.dispose()
    }
  })
})

async function checkTypes(folder: string, options: { readonly skipLibCheck: boolean }): Promise<void> {
  const compilerOptions = {
    strict: true,
    noEmit: true,
    target: 'es2024',
    lib: ['es2024'],
    module: 'nodenext',
    types: ['node'],
    allowImportingTsExtensions: true,
    ...options,
  }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }))
  await run(folder, ['tsc', '-p', '.'])
}
