/** Pages of a list that is read by tokens: each page names the next, and those that were seen can be gone back to. */
import { Button, Group, Text } from '@mantine/core'
import { useState } from 'react'

export interface Pages {
  /** Of the page that is shown; null is the first. */
  readonly token: string | null
  /** From 1. */
  readonly number: number
  next(token: string): void
  back(): void
}

/** Begins at the first page, and again whenever `list` changes. */
export function usePages(list: string): Pages {
  const [turned, setTurned] = useState<{ readonly list: string; readonly tokens: readonly string[] }>({
    list,
    tokens: [],
  })
  const tokens = turned.list === list ? turned.tokens : []
  return {
    token: tokens.at(-1) ?? null,
    number: tokens.length + 1,
    next: (token) => setTurned({ list, tokens: [...tokens, token] }),
    back: () => setTurned({ list, tokens: tokens.slice(0, -1) }),
  }
}

export interface PageTurnerProps {
  readonly pages: Pages
  /** Of the page after this one; null when there is none, undefined while it is not known. */
  readonly next: string | null | undefined
  /** How many rows this page has. */
  readonly rows: number
}

/** Leads to the page before and the page after; absent while one page holds everything. */
export function PageTurner({ pages, next, rows }: PageTurnerProps) {
  if (pages.number === 1 && next === null) return null
  return (
    <Group component="nav" aria-label="Pages" justify="space-between">
      <Text size="sm" c="var(--quiet)">
        Page {pages.number}, {rows} {rows === 1 ? 'row' : 'rows'}
      </Text>
      <Group gap="xs">
        <Button size="compact-sm" variant="default" disabled={pages.number === 1} onClick={pages.back}>
          Previous page
        </Button>
        <Button
          size="compact-sm"
          variant="default"
          disabled={next === null || next === undefined}
          onClick={() => {
            if (next !== null && next !== undefined) pages.next(next)
          }}
        >
          Next page
        </Button>
      </Group>
    </Group>
  )
}
