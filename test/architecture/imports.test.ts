/** Imports point one way: a file imports its own folder and what lies below it. */
import { describe, expect, it } from 'vitest'
import { isAllowed, isPlanned } from './layers.ts'
import { files, parsed } from './product.ts'

describe('the sources of the product', () => {
  it('lie in folders that have a floor', () => {
    expect(files.map(({ path }) => path).filter((path) => !isPlanned(path))).toEqual([])
  })

  it('import nothing against the arrow, and no source another one', () => {
    const against = files.flatMap(({ path, imports }) =>
      imports.filter((to) => !isAllowed(path, to)).map((to) => `${path} → ${to}`),
    )
    expect(against).toEqual([])
  })
})

describe('the plan', () => {
  it.each([
    ['letters/change.ts', 'store/database.ts'],
    ['api/reply.ts', 'store/database.ts'],
    ['sources/kafka/source.ts', 'queues/verbs/put.ts'],
    ['sources/kafka/module.ts', 'sources/source-module.ts'],
    ['sources/index.ts', 'sources/kafka/module.ts'],
    ['office.ts', 'sources/index.ts'],
    ['cli/main.ts', 'http/serve.ts'],
    ['client/letters.ts', 'letters/shapes.ts'],
    ['client/client.ts', 'sources/queues/shapes.ts'],
    ['letters/view.ts', 'letters/shapes.ts'],
    ['letters/shapes.ts', 'api/shapes.ts'],
    ['letters/shapes.ts', 'core/timestamp.ts'],
  ])('lets %s import %s', (from, to) => {
    expect(isAllowed(from, to)).toBe(true)
  })

  it.each([
    ['store/database.ts', 'letters/change.ts'],
    ['core/clock.ts', 'store/database.ts'],
    ['store/database.ts', 'outgoing/http.ts'],
    ['api/reply.ts', 'store/lock.ts'],
    ['client/client.ts', 'letters/letter.ts'],
    ['redrive/planning/plan.ts', 'sources/kafka/event.ts'],
    ['sources/outbox/module.ts', 'sources/kafka/event.ts'],
    ['sources/outbox/module.ts', 'sources/index.ts'],
    ['sources/source-module.ts', 'sources/outbox/module.ts'],
    ['sources/kafka/module.ts', 'office.ts'],
    ['office.ts', 'http/serve.ts'],
    ['letters/change.ts', 'attic/box.ts'],
    ['letters/shapes.ts', 'letters/letter.ts'],
    ['letters/shapes.ts', 'redrive/shapes.ts'],
    ['sources/kafka/shapes.ts', 'sources/outbox/shapes.ts'],
  ])('does not let %s import %s', (from, to) => {
    expect(isAllowed(from, to)).toBe(false)
  })
})

it('reads every kind of import', () => {
  const text = `import './a.ts'
    import type { B } from '../b.ts'
    export * from './c/c.ts'
    export { type D } from './d.ts'
    const e = await import('./e.ts')
    type F = typeof import('./f.ts')
    import { it } from 'vitest'`
  expect(parsed('letters/x.ts', text).imports).toEqual([
    'b.ts',
    'letters/a.ts',
    'letters/c/c.ts',
    'letters/d.ts',
    'letters/e.ts',
    'letters/f.ts',
  ])
})
