import { describe, expect, it } from 'vitest'
import type { Adapter } from '../adapters/adapter.ts'
import type { NewMessage } from '../table/message.ts'
import { createOutbox, type OutboxOptions } from './writer.ts'

const MESSAGE = { tenantId: 't', eventType: 'e', payload: {} } satisfies NewMessage

/** Fails when it is asked for anything: bad messages must not come that far. */
const adapter: Adapter<object> = {
  dialect: 'postgres',
  run: () => Promise.reject(new Error('the database was asked')),
}

describe('wrong options of an outbox', () => {
  it.each<[string, object]>([
    ['adapter', {}],
    ['adapter', { adapter: {} }],
    ['adapter.dialect', { adapter: { run: () => {}, dialect: 'mysql' } }],
    ['name', { adapter, name: '' }],
    ['name', { adapter, name: 5 }],
    ['table', { adapter, table: 5 }],
    ['table', { adapter, table: 'a.b.c' }],
    ['naming', { adapter, naming: 'camel' }],
    ['columns', { adapter, columns: 'id' }],
    ['columns.ide', { adapter, columns: { ide: 'id' } }],
    ['columns.id', { adapter, columns: { id: '' } }],
    ['log', { adapter, log: console.log }],
    ['clock', { adapter, clock: {} }],
    ['meter', { adapter, meter: { duplicate: () => {} } }],
    ['tabel', { adapter, tabel: 'x' }],
  ])('are named: %s', (option, options) => {
    // Wrong on purpose.
    expect(() => createOutbox(options as OutboxOptions<object>)).toThrow(
      expect.objectContaining({
        code: 'outbox_option_invalid',
        message: expect.stringContaining(`option ${option} is invalid`),
      }),
    )
  })
})

describe('a message that cannot be written', () => {
  const outbox = createOutbox({ adapter })
  const circle: Record<string, unknown> = {}
  circle.self = circle
  it.each<[field: string, message: object]>([
    ['tenantId is missing', { tenantId: undefined }],
    ['tenantId is no text', { tenantId: 5 }],
    ['tenantId is empty', { tenantId: '' }],
    ['tenantId holds U+0000', { tenantId: 'a\0' }],
    ['tenantId holds half a character', { tenantId: '\ud800' }],
    ['eventType is empty', { eventType: '' }],
    ['payload is missing', { payload: undefined }],
    ['payload is a function', { payload: () => {} }],
    ['payload is a symbol', { payload: Symbol('s') }],
    ['payload has no JSON: Do not know how to serialize a BigInt', { payload: { a: 1n } }],
    ['payload has no JSON: Converting circular structure', { payload: circle }],
    [
      'payload has no JSON: not today',
      {
        payload: {
          toJSON: () => {
            throw new Error('not today')
          },
        },
      },
    ],
    ['payload holds half a character', { payload: 'a\udc00' }],
    ['key is no uuid', { key: 'order-17' }],
    ['key is no uuid', { key: '' }],
    ['key is no uuid', { key: 17 }],
    ['orderingKey is empty', { orderingKey: '' }],
    ['orderingKey is no text', { orderingKey: 5 }],
    ['correlationId holds U+0000', { correlationId: '\0' }],
    ['headers is no object', { headers: 'a: b' }],
    ['headers is no object', { headers: ['a'] }],
    ['headers["a"] is no text', { headers: { a: { b: 'c' } } }],
    ['headers["a"] holds U+0000', { headers: { a: '\0' } }],
    ['headers[""] has no name', { headers: { '': 'x' } }],
    ['idempotencyKey is unknown; there are tenantId, eventType', { idempotencyKey: 'x' }],
  ])('is refused before any statement: %s', async (reason, message) => {
    // Wrong on purpose.
    const wrong = { ...MESSAGE, ...message } as NewMessage
    const refusal = { code: 'outbox_message_invalid' }
    await expect(outbox.add({}, wrong)).rejects.toMatchObject(refusal)
    await expect(outbox.add({}, wrong)).rejects.toThrow(`outbox message is invalid; ${reason}`)
    await expect(outbox.addMany({}, [MESSAGE, wrong])).rejects.toThrow(`invalid; messages[1].${reason}`)
  })

  it('is refused when there is none, or no list', async () => {
    // Wrong on purpose.
    const nothing = undefined as unknown as NewMessage
    await expect(outbox.add({}, nothing)).rejects.toThrow('message is missing')
    await expect(outbox.addMany({}, [nothing])).rejects.toThrow('messages[0].message is missing')
    await expect(outbox.addMany({}, nothing as unknown as NewMessage[])).rejects.toThrow(
      'messages is no list',
    )
  })
})
