import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type FreshStore, stores } from '../../../test/world/stores.ts'
import type { FailureReport } from '../../index.ts'
import { Office } from '../../office.ts'

describe.each(stores)('an application in the process of an office on $name', (kind) => {
  let place: FreshStore
  let office: Office
  beforeAll(async () => {
    place = await kind.fresh()
    office = await Office.open({ store: place.url })
  })
  afterAll(async () => {
    await office.close()
    await place.dispose()
  })

  const least: FailureReport = {
    engine: 'hmac',
    sourceId: 'job-1',
    originalMessage: '{"instanceId":"tenant-7"}',
    errorMessage: 'boom',
  }

  it('captures with the four fields that HTTP asks for, and gets the same letter', async () => {
    const { letter, created } = await office.letters.capture(least)
    const { letter: whole } = await office.letters.get(letter)
    expect({ ...whole, created, text: Buffer.from(whole.payload).toString() }).toMatchObject({
      created: true,
      engine: 'hmac',
      source: 'http',
      sourceId: 'job-1',
      instanceId: 'publisher',
      dequeueCount: 1,
      errorClass: '',
      errorMessage: 'boom',
      firstFailureAt: whole.lastFailureAt,
      text: '{"instanceId":"tenant-7"}',
    })
    expect(await office.letters.capture(least)).toMatchObject({ created: false, letter: { id: letter.id } })
  })

  it('captures with all of them, bytes and times of its own included', async () => {
    const { letter } = await office.letters.capture({
      ...least,
      sourceId: 'job-2',
      originalMessage: Uint8Array.of(0, 255),
      instanceId: 'tenant-8',
      errorClass: 'TimeoutError',
      errorStack: 'at somewhere',
      dequeueCount: 3,
      firstFailureAtUtc: new Date('2026-01-01T00:00:00Z'),
      lastFailureAtUtc: '2026-01-02T00:00:00.000001Z',
      correlationId: 'c-1',
      headers: { trace: '7' },
    })
    const { letter: whole } = await office.letters.get(letter)
    expect({ ...whole, payload: [...whole.payload] }).toMatchObject({
      instanceId: 'tenant-8',
      correlationId: 'c-1',
      dequeueCount: 3,
      firstFailureAt: 1_767_225_600_000_000n,
      lastFailureAt: 1_767_312_000_000_001n,
      payload: [0, 255],
    })
  })

  it.each([
    [{ sourceId: undefined }, 'sourceId'],
    [{ originalMessage: undefined }, 'originalMessage'],
    [{ errorMessage: undefined }, 'errorMessage'],
    [{ engine: 'queues' }, 'engine'],
    [{ dequeueCount: 0 }, 'dequeueCount'],
    [{ message: 'x' }, 'message'],
  ])('is refused by name what HTTP refuses: %o', async (changes, field) => {
    // Wrong on purpose.
    const report = { ...least, ...changes } as FailureReport
    await expect(office.letters.capture(report)).rejects.toThrow(field)
  })

  it('puts runs on record with the fields of HTTP; values are kept as JSON, texts and bytes as they are', async () => {
    const { entry } = await office.history.record({
      engine: 'hmac',
      operation: 'rotate',
      status: 'Succeeded',
      durationMs: 12,
      input: { tenant: 7 },
      output: 'rotated',
    })
    const { input, output, instanceId } = await office.history.get('hmac', entry.rowKey)
    expect([input, output].map((bytes) => Buffer.from(bytes ?? []).toString())).toEqual([
      '{"tenant":7}',
      'rotated',
    ])
    expect(instanceId).toBe('publisher')
  })
})
