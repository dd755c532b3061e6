/** The overview: what waits and why, in a sentence; then the causes, the numbers, and the sources. Everything is asked for at once. */
import './overview.css'
import { Grid, Stack } from '@mantine/core'
import { useInfiniteQuery, useQuery } from '@tanstack/react-query'
import { getRouteApi } from '@tanstack/react-router'
import { activityQuery, overviewQuery } from '../api/queries.ts'
import { RANGES, type SeriesName } from '../api/types.ts'
import { ActivityChart } from '../kit/activity-chart.tsx'
import { Page, Trouble } from '../kit/page.tsx'
import { Causes, causesQuery } from './causes.tsx'
import { FirstSteps } from './first-steps.tsx'
import { Sentence } from './sentence.tsx'
import { SourcesPanel } from './sources-panel.tsx'
import { Tiles } from './tiles.tsx'

const route = getRouteApi('/')
const LINES: readonly SeriesName[] = ['arrived', 'retried', 'confirmed', 'discarded']
const DEFAULT_RANGE = '24h'

export function OverviewScreen() {
  const { range = DEFAULT_RANGE } = route.useSearch()
  const navigate = route.useNavigate()
  const overview = useQuery(overviewQuery)
  const causes = useInfiniteQuery(causesQuery()).data?.pages[0]?.items
  const activity = useQuery(activityQuery(range))
  return (
    <Page title="Overview" isTitleHidden>
      <Stack gap="lg">
        {overview.data === undefined && overview.error !== null ? (
          <Trouble error={overview.error} retry={() => void overview.refetch()} />
        ) : (
          <Sentence overview={overview.data} groups={causes} />
        )}
        <FirstSteps overview={overview.data} />
        <Causes />
        <Tiles overview={overview.data} />
        <Grid gap="lg">
          <Grid.Col span={{ base: 12, lg: 8 }}>
            <ActivityChart
              read={activity}
              names={LINES}
              range={range}
              ranges={RANGES}
              setRange={(chosen) =>
                void navigate({
                  search: chosen === DEFAULT_RANGE ? {} : { range: chosen },
                  replace: true,
                  resetScroll: false,
                })
              }
            />
          </Grid.Col>
          <Grid.Col span={{ base: 12, lg: 4 }}>
            <SourcesPanel sources={overview.data?.sources} causes={causes ?? []} />
          </Grid.Col>
        </Grid>
      </Stack>
    </Page>
  )
}
