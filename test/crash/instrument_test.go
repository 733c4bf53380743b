package crash

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPointsFollowEveryStatement(t *testing.T) {
	t.Parallel()
	text, points, err := instrument("f", `create or replace function pawl.f() returns int language plpgsql as $$
#variable_conflict use_column
declare
  a int := case when true then 1 else 2 end;
begin
  a := case when a > 1 then ';' else '' end; -- a comment; with one
  if a > 1 then
    perform g(case when a then 1 end);
    return 7;
  elsif a then
    execute format($q$ select ';' ; $q$) into a;
  end if;
  for r in select 1 loop
    continue when a;
    case a when 1 then a := 2; else a := 3; end case;
    continue;
  end loop;
  begin
    a := 4;
  exception when others then
    raise exception 'no; %', 1;
  end;
  return a;
end $$;
`)
	require.NoError(t, err)
	require.Equal(t, 8, points)
	require.Equal(t, `create or replace function pawl.f() returns int language plpgsql as $$
#variable_conflict use_column
declare
  a int := case when true then 1 else 2 end;
begin assert pawl_test.point('f', 1);
  a := case when a > 1 then ';' else '' end; assert pawl_test.point('f', 2); -- a comment; with one
  if a > 1 then
    perform g(case when a then 1 end); assert pawl_test.point('f', 3);
    return 7;
  elsif a then
    execute format($q$ select ';' ; $q$) into a; assert pawl_test.point('f', 4);
  end if;
  for r in select 1 loop
    continue when a; assert pawl_test.point('f', 5);
    case a when 1 then a := 2; assert pawl_test.point('f', 6); else a := 3; assert pawl_test.point('f', 7); end case;
    continue;
  end loop;
  begin
    a := 4; assert pawl_test.point('f', 8);
  exception when others then
    raise exception 'no; %', 1;
  end;
  return a;
end $$;
`, text)
}

func TestEveryFunctionThatWritesHasATestBuild(t *testing.T) {
	t.Parallel()
	built, err := Functions()
	require.NoError(t, err)
	require.Greater(t, len(built), 60)
	for _, f := range built {
		require.Positive(t, f.Points, f.Name)
	}
}
