import { describe, expect, it } from 'vitest'
import type { Redrive, ToldRedrive } from '../api/redrive-types.ts'
import { withTold } from './told-redrives.ts'

const told = (id: string, sent: number): ToldRedrive => ({
  id,
  state: 'running',
  sentence: `${sent} sent`,
  action: 'retry',
  counts: {
    planned: 10,
    sent,
    skipped: 0,
    failed: 0,
    remaining: 10 - sent,
    confirmed: 0,
    returned: 0,
    unconfirmed: sent,
  },
  rateNow: null,
  secondsLeft: null,
  note: null,
  resumed: 0,
})

// Only what is looked at here.
const known = (id: string) => ({ ...told(id, 0), plannedBy: 'ada' }) as Redrive

describe('what is told of redrives', () => {
  it('changes those that are known, and keeps what is not told', () => {
    const { page, isIncomplete } = withTold({ items: [known('a')], continuationToken: null }, [told('a', 4)])
    expect(page?.items).toMatchObject([{ id: 'a', plannedBy: 'ada', sentence: '4 sent' }])
    expect(isIncomplete).toBe(false)
  })

  it('leaves out those that are over', () => {
    const { page } = withTold({ items: [known('b'), known('a')], continuationToken: null }, [told('a', 1)])
    expect(page?.items.map(({ id }) => id)).toEqual(['a'])
  })

  it('asks for more where another one is told', () => {
    expect(withTold({ items: [], continuationToken: null }, [told('c', 1)]).isIncomplete).toBe(true)
    expect(withTold(undefined, [told('c', 1)]).isIncomplete).toBe(true)
    expect(withTold(undefined, [])).toEqual({
      page: { items: [], continuationToken: null },
      isIncomplete: false,
    })
  })
})
