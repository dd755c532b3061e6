/** Letters: asked for by a query, read in a list that stands still while it is worked on, acted on by keys or by hand. */
import { Anchor, Button, Group, Text } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { DiscardDialog } from '../acts/discard-dialog.tsx'
import { nameOf } from '../acts/letter-name.ts'
import { usePlanning } from '../acts/plan-context.ts'
import type { LetterFilter, LetterItem, LetterKey } from '../api/types.ts'
import { Empty, Page, Shown } from '../kit/page.tsx'
import { Table } from '../kit/table.tsx'
import { useLive } from '../live/live.tsx'
import { grouped } from '../time/format.ts'
import { LETTER_COLUMNS, NARROW_COLUMNS } from './letter-columns.tsx'
import './letters.css'
import { Pager } from './pager.tsx'
import { QueryBar } from './query-bar.tsx'
import { SelectionBar } from './selection-bar.tsx'
import { SidePanel } from './side-panel.tsx'
import { type LetterList, useLetterList } from './use-letter-list.ts'
import { useListKeys } from './use-list-keys.ts'
import { useManyActs } from './use-many-acts.ts'
import { useFollowingPanel, useRowCursor } from './use-row-cursor.ts'
import { useSelection } from './use-selection.ts'

const route = getRouteApi('/letters')

/** What is asked for where nothing is. */
const DEFAULT_QUERY = 'status:pending'

export function LettersScreen() {
  const { query = DEFAULT_QUERY, panel } = route.useSearch()
  const navigate = useNavigate()
  const { isOpen: isPlanning, started } = usePlanning()
  const [discarded, setDiscarded] = useState<LetterItem | null>(null)
  const [isPointedAt, setPointedAt] = useState(false)
  const [isSelecting, setSelecting] = useState(false)
  const [isSettled, setSettled] = useState(false)

  const isHeld = isSelecting || isSettled || isPointedAt || isPlanning || discarded !== null
  const list = useLetterList(query, isHeld)
  const selection = useSelection(query, list.rows)
  if (isSelecting === selection.isEmpty) setSelecting(!selection.isEmpty)
  useClearedByRedrive(started, selection.clear)
  const cursor = useRowCursor(query, list.rows)
  const current = list.rows[cursor.index]
  // A letter that was just acted on stays until the cursor leaves it: the same key again must not hit the next one.
  const isCurrentSettled = current !== undefined && isSettledIn(list.filter, current)
  if (isSettled !== isCurrentSettled) setSettled(isCurrentSettled)
  const acts = useManyActs({ text: query, list, selection, current, askWhy: setDiscarded })

  const showPanel = (letter: LetterKey | null) =>
    void navigate({
      to: '/letters',
      search: (before) => ({ ...before, panel: letter === null ? undefined : nameOf(letter) }),
      replace: true,
    })
  useFollowingPanel(panel, current, showPanel)
  useListKeys({ list, selection, cursor, current, panel, acts, showPanel })
  const panelKey = panel === undefined ? null : keyOf(panel)

  return (
    <Page title="Letters">
      <QueryBar
        text={query}
        filter={list.filter}
        problems={list.problems}
        ask={(text) => void navigate({ to: '/letters', search: { query: text } })}
      />
      <div className="letters" data-panel={panelKey === null ? undefined : true}>
        {list.problems.length > 0 ? (
          <Empty title="The query has an error.">See the message below the query.</Empty>
        ) : (
          <Shown read={list.read} what="letters">
            {() => (
              <div>
                <Group justify="space-between" mb="xs" className="list-bar">
                  {selection.isEmpty ? (
                    <Standing list={list} />
                  ) : (
                    <SelectionBar list={list} selection={selection} acts={acts} />
                  )}
                  <Group gap="sm">
                    {list.news > 0 && (
                      <Button size="compact-sm" radius="xl" onClick={list.refresh} title={NEWS_TITLE}>
                        {grouped(list.news)} new
                      </Button>
                    )}
                    <Pager list={list} />
                  </Group>
                </Group>
                {list.rows.length === 0 ? (
                  <Nothing query={query} />
                ) : (
                  <div
                    className={list.isOld ? 'letters-old' : undefined}
                    onPointerEnter={() => setPointedAt(true)}
                    onPointerLeave={() => setPointedAt(false)}
                  >
                    <Table
                      label="Letters"
                      columns={panelKey === null ? LETTER_COLUMNS : NARROW_COLUMNS}
                      rows={list.rows}
                      keyOf={nameOf}
                      current={cursor}
                      selection={{
                        keys: selection.names,
                        toggle: selection.toggle,
                        setAll: selection.setPage,
                      }}
                    />
                  </div>
                )}
              </div>
            )}
          </Shown>
        )}
        {panelKey !== null && <SidePanel letter={panelKey} close={() => showPanel(null)} />}
      </div>
      <DiscardDialog letter={discarded} close={() => setDiscarded(null)} />
    </Page>
  )
}

const NEWS_TITLE = 'Captured since this list was read, whatever the query. Press to refresh.'

function Standing({ list: { total } }: { readonly list: LetterList }) {
  return (
    <Text size="sm" className="numbers">
      {total === null
        ? 'Counting…'
        : `${total.exact ? '' : 'At least '}${grouped(total.total)} ${total.total === 1 ? 'letter matches' : 'letters match'}`}
    </Text>
  )
}

function Nothing({ query }: { readonly query: string }) {
  const { standing } = useLive()
  if (standing?.captured === 0) {
    return (
      <Empty title="No letters yet.">
        Messages that fail permanently in queues, engines, outboxes, webhooks and Kafka become letters; others
        are reported with <code>POST /api/dlq</code>. See the <Anchor href="/docs">documentation</Anchor>.
      </Empty>
    )
  }
  return query === DEFAULT_QUERY ? (
    <Empty title="No letter is pending.">New failures show up here.</Empty>
  ) : (
    <Empty title="No letter matches.">Remove a term, or choose “All” statuses.</Empty>
  )
}

/** It has another status by now than the one that the list is of. */
const isSettledIn = ({ status }: LetterFilter, letter: LetterItem): boolean =>
  status !== undefined && letter.status !== status

/** What was chosen for a redrive is on its way: the list may move again. */
function useClearedByRedrive(started: string | null, clear: () => void): void {
  const known = useRef(started)
  useEffect(() => {
    if (known.current === started) return
    known.current = started
    clear()
  })
}

/** `engine/rowKey` of the address. */
function keyOf(panel: string): LetterKey | null {
  const slash = panel.indexOf('/')
  return slash < 1 ? null : { engine: panel.slice(0, slash), rowKey: panel.slice(slash + 1) }
}
