/** What `bartleby kafka check` finds on a broker without access control; rights are in test/kafka/rights.test.ts. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { describeKafka, kafkaBroker } from '../../../test/world/kafka/broker-of-run.ts'
import { settingsAt } from '../../../test/world/kafka/settings.ts'
import { newName } from '../../../test/world/kafka/topics.ts'
import { bartleby } from '../../../test/world/terminal-double.ts'
import { checkKafka } from './check.ts'

describeKafka('checking a configuration', () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'bartleby-kafka-check-'))
  })
  afterAll(() => rmSync(folder, { recursive: true, force: true }))

  it('finds everything that is there, and joins and writes nothing', async () => {
    const kafka = await kafkaBroker()
    const dlqTopic = await kafka.newTopic({ partitions: 3 })
    const retryTopic = await kafka.newTopic()
    const settings = settingsAt(kafka.bootstrap, {
      services: { svc: { dlqTopic, retryTopic } },
    })
    expect(await checkKafka(settings)).toEqual([
      { subject: `broker ${kafka.bootstrap}`, verdict: 'fine', message: 'answers (PLAINTEXT)' },
      { subject: `dlq topic ${dlqTopic}`, verdict: 'fine', message: 'can be read (3 partitions)' },
      { subject: `group ${settings.groupId}`, verdict: 'fine', message: 'can be joined' },
      { subject: `retry topic ${retryTopic}`, verdict: 'fine', message: 'can be written to (1 partition)' },
      {
        subject: `retry topic ${retryTopic}`,
        verdict: 'fine',
        message: 'takes 1048588 bytes (max.message.bytes)',
      },
    ])
    expect(await kafka.members(settings.groupId)).toBe(0)
    expect(await kafka.endOffset(retryTopic)).toBe(0n)
  })

  it('says what is missing', async () => {
    const kafka = await kafkaBroker()
    const [dlqTopic, retryTopic] = [
      newName(),
      await kafka.newTopic({ config: { 'max.message.bytes': '5000' } }),
    ]
    const settings = settingsAt(kafka.bootstrap, {
      services: { svc: { dlqTopic, retryTopic } },
    })
    const servers = [kafka.bootstrap, '127.0.0.1:1']
    const checks = await checkKafka({ ...settings, connection: { ...settings.connection, servers } })
    expect(checks.filter(({ verdict }) => verdict === 'missing')).toEqual([
      { subject: 'broker 127.0.0.1:1', verdict: 'missing', message: expect.stringContaining('ECONNREFUSED') },
      {
        subject: `dlq topic ${dlqTopic}`,
        verdict: 'missing',
        message: 'does not exist; Bartleby makes no topics',
      },
      {
        subject: `retry topic ${retryTopic}`,
        verdict: 'missing',
        message: 'takes 5000 bytes at most (max.message.bytes), less than max_message_bytes 1048576',
      },
    ])
  })

  it('is a command, with a code for what is missing', async () => {
    const kafka = await kafkaBroker()
    const topic = await kafka.newTopic()
    const config = join(folder, 'bartleby.yaml')
    const section = {
      servers: [kafka.bootstrap],
      token_hashes: ['a'.repeat(64)],
      services: { svc: { dlq_topic: topic, retry_topic: newName() } },
    }
    writeFileSync(config, JSON.stringify({ kafka: section }))
    const { code, out, err } = await bartleby(['kafka', 'check', '--config', config])
    expect(code).toBe(1)
    expect(out).toContain(`✓ dlq topic ${topic} can be read (1 partition)`)
    expect(out).toContain('✗ retry topic')
    expect(err).toBe('bartleby: 1 thing is missing')
    const json = await bartleby(['kafka', 'check', '--config', config, '--json'])
    expect(JSON.parse(json.out)).toHaveLength(4)
  })
})
